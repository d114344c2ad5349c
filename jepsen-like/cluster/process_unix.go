//go:build unix

package cluster

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

const canPause = true

// Stop has the process stand still.
func (p PID) Stop() error { return syscall.Kill(int(p), syscall.SIGSTOP) }

// Continue lets the process go on.
func (p PID) Continue() error { return syscall.Kill(int(p), syscall.SIGCONT) }

func terminate(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

func noSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) }

// line is a pipe by which a leasenode notices that the harness is gone.
type line struct{ near, far *os.File }

// lifeline gives the process to be started the far end of a line.
func lifeline(cmd *exec.Cmd) (*line, error) {
	far, near, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{far}
	cmd.Env = append(cmd.Env, "LEASENODE_LIFELINE_FD=3")
	return &line{near, far}, nil
}

// handedOver closes what now is the process's.
func (l *line) handedOver() { _ = l.far.Close() }

// cut closes the line.
func (l *line) cut() {
	_ = l.near.Close()
	_ = l.far.Close()
}
