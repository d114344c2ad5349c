package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// nodeProcess is one life of a node of a dev cluster.
type nodeProcess struct {
	member devMember
	cmd    *exec.Cmd
	// logStart is where this life begins in the log.
	logStart int64
	// lifeline is the end of a pipe that only this process has: the node stops when
	// it is closed.
	lifeline *os.File
	// done is closed when the process has ended; its state can be read then.
	done chan struct{}
	// asked tells, to the supervisor, a stop that was asked for from a death.
	asked bool
}

// startNode starts a process for a member. It is sent to ended when it ends, which
// must have room for it.
func startNode(exe string, env []string, m devMember, ended chan<- *nodeProcess) (*nodeProcess, error) {
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", m.id, err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	end, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", m.id, err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make the lifeline of %s: %w", m.id, err)
	}
	defer func() { _ = theirs.Close() }()
	cmd := exec.Command(exe, m.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs} // file descriptor 3
	cmd.Env = append(nodeEnvironment(env), lifelineEnv+"=3")
	cmd.SysProcAttr = nodeAttributes()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", m.id, err), ours.Close())
	}
	p := &nodeProcess{member: m, cmd: cmd, logStart: end, lifeline: ours, done: make(chan struct{})}
	go p.wait(ended)
	return p, nil
}

// nodeEnvironment is env without the flags of dev, which are not those of serve.
func nodeEnvironment(env []string) []string {
	var rest []string
	for _, pair := range env {
		if !strings.HasPrefix(pair, envPrefix) {
			rest = append(rest, pair)
		}
	}
	return rest
}

// wait returns when the process has ended and that was told.
func (p *nodeProcess) wait(ended chan<- *nodeProcess) {
	// What it returns is in the process state too.
	_ = p.cmd.Wait()
	_ = p.lifeline.Close()
	close(p.done)
	ended <- p
}

func (p *nodeProcess) pid() int { return p.cmd.Process.Pid }

// ask asks the process to stop.
func (p *nodeProcess) ask() {
	p.asked = true
	// It fails only if the process has ended already.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
}

// stopped waits until the process has ended; once ctx has ended it is killed, which
// is an error.
func (p *nodeProcess) stopped(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	}
	// It fails only if the process has ended by now.
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("%s did not stop within %v and was killed; see %s", p.member.id, stopTimeout, p.member.log)
}

// why says how the process ended and, unless a signal ended it, the last error in
// its log: one that was killed has not come to say why.
func (p *nodeProcess) why() string {
	state := p.cmd.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return state.String()
	}
	if line := p.lastError(); line != "" {
		return state.String() + "; its log says: " + line
	}
	return state.String()
}

// lastError is the last line of this life's log that tells of an error, or "".
func (p *nodeProcess) lastError() string {
	const most = 1 << 20
	log, err := os.Open(p.member.log)
	if err != nil {
		return ""
	}
	defer func() { _ = log.Close() }()
	start := p.logStart
	if info, err := log.Stat(); err == nil {
		start = max(start, info.Size()-most)
	}
	text, err := io.ReadAll(io.NewSectionReader(log, start, most))
	if err != nil {
		return ""
	}
	last := ""
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, most)
	for lines.Scan() {
		if line := lines.Text(); tellsError(line) {
			last = line
		}
	}
	return last
}

func tellsError(line string) bool {
	for _, start := range []string{"leasenode: ", "panic: ", "fatal error: "} {
		if strings.HasPrefix(line, start) {
			return true
		}
	}
	return strings.Contains(line, "[ERROR]")
}

// describe is the process in a message.
func (p *nodeProcess) describe() string {
	return p.member.id + " (process " + strconv.Itoa(p.pid()) + ")"
}
