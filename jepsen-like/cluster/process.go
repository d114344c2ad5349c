package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
)

// process is one run of a node.
type process struct {
	cmd *exec.Cmd
	// exited is closed when the process is gone, and everybody was told.
	exited chan struct{}
	joined sync.WaitGroup
	// ending and stopped belong to the goroutine of the target's methods.
	ending, stopped bool

	// commands is a chaosnode's standard input, answers what came back; else nil.
	commands io.WriteCloser
	answers  chan control.Answer
	// heard is closed when all that it said was heard. Then fate says where it was when it
	// killed itself, as it was told to; "" if it did not.
	heard  chan struct{}
	fate   string
	number int // of the last command

	mu     sync.Mutex
	killed bool // by us, so that its end is no news
}

// launch starts a process that says what it has to say to the log, and, if it is a
// chaosnode, to hear what happens to it.
func launch(binary string, args []string, log *os.File, program Program, hear func(control.Event)) (*process, error) {
	p := &process{cmd: exec.Command(binary, args...), exited: make(chan struct{})}
	p.cmd.Stderr, p.cmd.Stdout = log, log
	p.cmd.SysProcAttr = attributes()
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LEASENODE_") { // they would be flags
			p.cmd.Env = append(p.cmd.Env, pair)
		}
	}
	if program == Chaosnode {
		return p, p.launchControlled(hear)
	}
	line, err := lifeline(p.cmd)
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		line.cut()
		return nil, err
	}
	line.handedOver()
	p.joined.Go(func() {
		<-p.exited
		line.cut()
	})
	return p, nil
}

func (p *process) launchControlled(hear func(control.Event)) error {
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer out.Close()
	p.cmd.Stdout = out
	if p.commands, err = p.cmd.StdinPipe(); err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return errors.Join(err, in.Close())
	}
	p.answers, p.heard = make(chan control.Answer, 1000), make(chan struct{})
	p.joined.Go(func() {
		defer in.Close()
		defer close(p.heard)
		p.listen(in, hear)
	})
	return nil
}

// listen sorts what a chaosnode says, until it is gone.
func (p *process) listen(in io.Reader, hear func(control.Event)) {
	defer close(p.answers)
	for lines := json.NewDecoder(in); ; {
		var a control.Answer
		switch {
		case lines.Decode(&a) != nil:
			return
		case a.Event == nil:
			p.answers <- a
		case a.Event.What == control.Killed:
			p.fate = a.Event.Detail
		default:
			hear(*a.Event)
		}
	}
}

// lastHeard waits for the last that a process said which has ended, and returns its fate.
func (p *process) lastHeard() string {
	if p.heard == nil {
		return ""
	}
	<-p.heard
	return p.fate
}

// commandTimeout is how long a node may take to obey: it has just been started, maybe.
const commandTimeout = 20 * time.Second

// obey has a chaosnode do c, and returns when that is in effect. One that stands still
// does it once it goes on.
func (p *process) obey(c control.Command) error {
	p.number++
	c.Number = p.number
	if err := json.NewEncoder(p.commands).Encode(c); err != nil {
		return p.goneOr(fmt.Errorf("tell a node: %w", err))
	}
	if p.stopped {
		return nil
	}
	timeout := time.NewTimer(commandTimeout)
	defer timeout.Stop()
	for {
		select {
		case a, ok := <-p.answers:
			switch {
			case !ok:
				return p.goneOr(errors.New("a node says what it should not, and goes on"))
			case a.Error != "":
				return errors.New(a.Error)
			case a.Number >= c.Number:
				return nil
			}
		case <-timeout.C:
			return fmt.Errorf("a node does not obey within %v", commandTimeout)
		}
	}
}

// goneOr returns err unless the process has ended, or is just about to.
func (p *process) goneOr(err error) error {
	select {
	case <-p.exited:
		return nil
	case <-time.After(time.Second):
		return err
	}
}

// kill ends the process and returns when it is gone.
func (p *process) kill() error {
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	err := p.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if err == nil {
		<-p.exited
		p.joined.Wait()
	}
	return err
}

func (p *process) wasKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}
