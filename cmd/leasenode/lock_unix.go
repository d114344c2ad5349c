//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// The exit codes of a COMMAND that could not be started, as shells have them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and its number
)

// executable returns an *exitError if there is no such command, or it cannot be executed.
func executable(command string) error {
	if _, err := exec.LookPath(command); err != nil {
		return notStarted(command, err)
	}
	return nil
}

func notStarted(command string, err error) *exitError {
	code := exitNotExecutable
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		code = exitNotFound
	}
	var inner *exec.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &exitError{code: code, err: fmt.Errorf("cannot run %q: %w", command, err)}
}

// catchSignals returns the signals that are for COMMAND, until the function that it
// returns is called. One that lock was started with ignored, as by nohup, stays ignored.
func catchSignals() (chan os.Signal, func()) {
	signals := make(chan os.Signal, 16)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals, func() { signal.Stop(signals) }
}

func signalCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitFailed
}

// guarded runs COMMAND under l, in a guard of its own, and returns when nothing of it
// is left.
func (r *lockRun) guarded(l *holder.Lease, signals chan os.Signal) error {
	adoptOrphans() // those of the guard, should it be killed
	g, err := r.startGuard(l)
	if err != nil {
		return err
	}
	defer g.join()
	// While COMMAND has the terminal, this process is in its background, and telling what
	// happens must not stop it.
	signal.Ignore(syscall.SIGTTOU)
	signal.Notify(signals, syscall.SIGCONT) // as when it is brought to the foreground
	overdue := time.NewTimer(24 * time.Hour)
	overdue.Stop()
	fenced := l.Context().Done()
	for {
		select {
		case n, ok := <-g.notes:
			if !ok {
				return g.died()
			}
			if done, err := g.heed(n); done {
				return err
			}
		case s := <-signals:
			if number, ok := s.(syscall.Signal); ok {
				note{word: noteSignal, number: int64(number)}.send(g.toGuard)
			}
		case <-fenced:
			fenced = nil
			g.fence()
			overdue.Reset(r.margin() * 3 / 4)
		case <-overdue.C:
			// The guard has not done its duty: it must be stopped. Without it,
			// what is left is ended from here.
			_ = g.cmd.Process.Kill()
		}
	}
}

// guard is the process that runs COMMAND, as lock sees it.
type guard struct {
	run     *lockRun
	lease   *holder.Lease
	cmd     *exec.Cmd
	notes   chan note
	toGuard *os.File
	from    *os.File
	joined  sync.WaitGroup
	group   int                // the process group of COMMAND, once it is started
	fenced  *lease.FencedError // once COMMAND was told to stop
}

// startGuard starts this program again as the guard. Its two pipes keep the numbers
// they have here, so that every file descriptor that lock was started with reaches
// COMMAND under its own.
func (r *lockRun) startGuard(l *holder.Lease) (*guard, error) {
	theirsIn, toGuard, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start the guard of %q: %w", r.key, err)
	}
	defer func() { _ = theirsIn.Close() }()
	from, theirsOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %q: %w", r.key, err), toGuard.Close())
	}
	defer func() { _ = theirsOut.Close() }()
	g := &guard{run: r, lease: l, notes: make(chan note), toGuard: toGuard, from: from}
	if err := g.start(theirsIn, theirsOut); err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of %q: %w", r.key, err), toGuard.Close(), from.Close())
	}
	g.joined.Go(func() { readNotes(from, g.notes) })
	return g, nil
}

func (g *guard) start(in, out *os.File) error {
	for _, pipe := range []*os.File{in, out} {
		if _, err := unix.FcntlInt(pipe.Fd(), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("let it inherit a pipe: %w", err)
		}
	}
	exe, err := thisProgram()
	if err != nil {
		return err
	}
	r := g.run
	number := func(pipe *os.File) string { return strconv.FormatUint(uint64(pipe.Fd()), 10) }
	g.cmd = exec.Command(exe, append([]string{"guard", number(in), number(out), r.grace().String(), "--"}, r.command...)...)
	g.cmd.Args[0] = r.app.name
	g.cmd.Env = append(r.app.env[:len(r.app.env):len(r.app.env)], envName("key")+"="+r.key, envName("epoch")+"="+strconv.FormatUint(g.lease.Epoch(), 10))
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = r.app.stdin, r.app.stdout, r.app.stderr
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a signal to lock's group is not for the guard
	return g.cmd.Start()
}

// join returns when the guard has ended. It ends at the latest when it finds its pipe
// closed.
func (g *guard) join() {
	_ = g.toGuard.Close()
	for range g.notes { // whatever it still has to say
	}
	g.joined.Wait()
	_ = g.from.Close()
	_ = g.cmd.Wait() // how it ended does not matter any more
}

// heed does what the guard asks for. It returns true when COMMAND has ended, and what
// came of it.
func (g *guard) heed(n note) (done bool, err error) {
	r := g.run
	switch n.word {
	case noteAsk:
		note{word: noteLeft, number: int64(g.lease.Remaining())}.send(g.toGuard)
	case noteStarted:
		g.group = int(n.number)
	case noteFenced:
		g.tell()
	case noteKilled:
		if fence, fenced := errors.AsType[*lease.FencedError](g.lease.Check()); fenced && fence.Reason == lease.ReasonLost {
			r.say("killed %s at once: its lease is over", r.command[0])
		} else {
			r.say("killed %s: it did not end in time", r.command[0])
		}
	case noteFailed:
		return true, &exitError{code: int(n.number), err: fmt.Errorf("cannot run %q: %s", r.command[0], n.text)}
	case noteEnded:
		switch {
		case g.fenced != nil:
			return true, &endedError{r.command[0], g.fenced}
		case n.number != 0:
			return true, &exitError{code: int(n.number)}
		}
		return true, nil
	}
	return false, nil
}

// fence has COMMAND stopped, or killed if the lease is over already.
func (g *guard) fence() {
	word := noteFence
	if g.why().Reason == lease.ReasonLost {
		word = noteKill
	}
	note{word: word}.send(g.toGuard)
}

// tell says, once, why COMMAND is told to stop.
func (g *guard) tell() {
	if g.fenced != nil {
		return
	}
	why := g.why()
	g.fenced = why
	g.run.say("fenced from %q at epoch %d (%s, %s): stopping %s", why.Key, why.Epoch, why.Reason, why.Cause, g.run.command[0])
}

// why is why the lease is not held. If it is held again meanwhile, it was not at the
// moment that mattered.
func (g *guard) why() *lease.FencedError {
	if fence, ok := errors.AsType[*lease.FencedError](g.lease.Check()); ok {
		return fence
	}
	return &lease.FencedError{Reason: lease.ReasonExpiredLocally, Cause: lease.CauseExpired, Key: g.lease.Key(), Epoch: g.lease.Epoch()}
}

// died ends what a guard that was killed has left behind.
func (g *guard) died() error {
	_ = g.cmd.Wait()
	if g.group != 0 {
		killRest(g.group)
	}
	if g.lease.Check() != nil {
		g.tell()
	}
	if g.fenced != nil {
		return &endedError{g.run.command[0], g.fenced}
	}
	return fmt.Errorf("the guard of %s has died (%v), and %s was killed", g.run.command[0], g.cmd.ProcessState, g.run.command[0])
}

// endedError says that COMMAND was ended at the fence.
type endedError struct {
	command string
	fence   *lease.FencedError
}

func (e *endedError) Error() string {
	f := e.fence
	return fmt.Sprintf("%s was ended, since the lease of %q at epoch %d was not held any more (%s, %s)", e.command, f.Key, f.Epoch, f.Reason, f.Cause)
}

func (e *endedError) Unwrap() error { return e.fence }
