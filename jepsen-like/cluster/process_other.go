//go:build !unix

package cluster

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

const canPause = false

// Stop refuses: this system cannot have a process stand still.
func (p PID) Stop() error { return errors.ErrUnsupported }

// Continue refuses.
func (p PID) Continue() error { return errors.ErrUnsupported }

// terminate kills: there is no asking.
func terminate(p *os.Process) error { return p.Kill() }

func noSpace(error) bool { return false }

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

type line struct{}

func lifeline(*exec.Cmd) (*line, error) { return &line{}, nil }

func (*line) handedOver() {}

func (*line) cut() {}
