package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Command is a program to run.
type Command struct {
	// Name says in errors what it is.
	Name string
	Path string
	Args []string
	// Dir is where it works, and where its output goes, to the file "log".
	Dir string
}

// Process is one life of a program. Its methods are safe for concurrent use.
type Process struct {
	name  string
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// Start starts the program, in a process group of its own, so that Ctrl-C in a terminal
// reaches this process alone. It makes the folder if need be. Kill has to be called in
// the end.
func Start(c Command) (*Process, error) {
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	p := &Process{name: c.Name, log: filepath.Join(c.Dir, "log"), ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: open its log: %w", c.Name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	p.cmd = exec.Command(c.Path, c.Args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.Dir, log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // how it ended is in the process state
	}()
	return p, nil
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill kills the process with SIGKILL and returns when it has ended. A process that has
// ended already is fine.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

// Err says how the process ended and what it wrote last; nil while it runs.
func (p *Process) Err() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %v; it wrote last: %s", p.name, p.cmd.ProcessState, p.lastLines())
	default:
		return nil
	}
}

// lastLines is the end of the log.
func (p *Process) lastLines() string {
	const most = 600
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-most):]))
}
