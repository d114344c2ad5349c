package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

// stopTimeout is how long a program has to end after it was asked to.
const stopTimeout = 5 * time.Second

// program is a holder, in a process of its own that tells what it believes.
type program struct {
	name string
	args []string // the first is the executable
	env  []string // beside the harness's own
	log  string   // the file for its standard error
}

// programs are those that run. They can be stopped by number, as a [nemesis.Target]'s
// holders.
type programs struct {
	now    func() time.Duration
	sink   interface{ AddEvent(history.NodeEvent) }
	ledger *workload.Ledger

	running []*running
}

// running is a program under way.
type running struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	log   *os.File
	done  chan struct{} // closed when it has ended and all it wrote was read
	fault error         // of what it wrote; to be read when done

	mu      sync.Mutex
	ending  bool  // it was asked to
	stopped bool  // by StopHolder
	exit    error // how it ended; to be read when done
}

// start starts one more program.
func (ps *programs) start(p program) error {
	r := &running{name: p.name, cmd: exec.Command(p.args[0], p.args[1:]...), done: make(chan struct{})}
	r.cmd.Env = append(os.Environ(), p.env...)
	ownGroup(r.cmd)
	var err error
	if r.log, err = os.Create(p.log); err != nil {
		return err
	}
	r.cmd.Stderr = r.log
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		return errors.Join(err, r.log.Close())
	}
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return errors.Join(err, r.log.Close())
	}
	if err := r.cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", strings.Join(p.args, " "), err), r.log.Close())
	}
	ps.running = append(ps.running, r)
	ps.tell(r, "started", "")
	go ps.follow(r, stdout) // joined by done
	return nil
}

// follow reads what a program tells until it ends.
func (ps *programs) follow(r *running, stdout io.Reader) {
	defer close(r.done)
	r.fault = workload.Scan(stdout, func(line workload.Line) { ps.ledger.Take(r.name, line) })
	if r.fault != nil {
		r.fault = fmt.Errorf("%s cannot be judged: %w", r.name, r.fault)
		_, _ = io.Copy(io.Discard, stdout) // so that it is not stuck in a write
	}
	err := r.cmd.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.ending {
		r.exit = err
		if err == nil {
			r.exit = errors.New("exit status 0")
		}
	}
	detail := "as it was asked to"
	if r.exit != nil {
		detail = r.exit.Error()
	}
	ps.tell(r, "exited", detail)
}

func (ps *programs) tell(r *running, what, detail string) {
	ps.sink.AddEvent(history.NodeEvent{Node: r.name, What: what, At: ps.now(), Detail: detail})
}

// Holders returns how many there are.
func (ps *programs) Holders() int { return len(ps.running) }

// StopHolder implements a part of [nemesis.Target].
func (ps *programs) StopHolder(n int) error { return ps.running[n].stand(ps, true) }

// ContinueHolder implements a part of [nemesis.Target].
func (ps *programs) ContinueHolder(n int) error { return ps.running[n].stand(ps, false) }

// stand stops a program or lets it go on. One that has ended does neither.
func (r *running) stand(ps *programs, still bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hasEnded() || r.stopped == still {
		return nil
	}
	signal, what := goOn, "continued"
	if still {
		signal, what = standStill, "stopped"
	}
	if err := signal(r.cmd); err != nil {
		return fmt.Errorf("%s could not be %s: %w", r.name, what, err)
	}
	r.stopped = still
	ps.tell(r, what, "")
	return nil
}

func (r *running) hasEnded() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// stop asks all programs to end and sees to it that they do. It returns what was wrong
// with any: one that ended by itself, or wrote what cannot be judged.
func (ps *programs) stop() error {
	for _, r := range ps.running {
		r.mu.Lock()
		r.ending = !r.hasEnded()
		if r.ending {
			_ = goOn(r.cmd) // what fails here has ended
			_ = askToEnd(r.cmd)
		}
		r.mu.Unlock()
		_ = r.stdin.Close()
	}
	deadline := time.After(stopTimeout)
	var faults []error
	for _, r := range ps.running {
		select {
		case <-r.done:
		case <-deadline:
			_ = killAll(r.cmd)
			<-r.done
		}
		_ = killAll(r.cmd) // whatever it has left behind
		faults = append(faults, r.fault, r.log.Close())
		if r.exit != nil {
			faults = append(faults, fmt.Errorf("%s ended by itself: %w (its words are in %s)", r.name, r.exit, filepath.Base(r.log.Name())))
		}
	}
	return errors.Join(faults...)
}
