//go:build unix

package main

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/holder"
)

func (a *app) guardCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "guard IN OUT GRACE -- COMMAND ARG...",
		Hidden: true,
		Short:  `Run and end a command on behalf of "leasenode lock", which starts it`,
		Long: `Run COMMAND on behalf of the "leasenode lock" at the other end of the file descriptors
IN and OUT, and end it in time. For the internal use of lock, of the same version.`,
		Example: `  leasenode lock KEY -- COMMAND ARG...`,
		Args:    cobra.MinimumNArgs(4),
		RunE: a.action(func(_ context.Context, args []string) error {
			in, err := inherited(args[0])
			if err != nil {
				return err
			}
			out, err := inherited(args[1])
			if err != nil {
				return err
			}
			grace, err := time.ParseDuration(args[2])
			if err != nil {
				return usagef("GRACE: %w", err)
			}
			w := &warden{in: in, out: out, rules: watch{grace: grace}, clock: holder.NewClock(), command: args[3:], env: a.env}
			w.run()
			return nil
		}),
	}
}

// inherited opens a file descriptor that this process was started with, and that its
// children shall not have.
func inherited(number string) (*os.File, error) {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return nil, usagef("%q is no file descriptor: %w", number, err)
	}
	syscall.CloseOnExec(fd)
	return openLifeline(uintptr(fd))
}

// warden is what a guard does: it starts COMMAND, and sees to it that nothing of it
// outlives the lease, or lock. It rests on nobody's word for longer than that is good
// for: lock is asked again and again how long the lease is held, and if it does not
// answer, being stopped or too slow, its last answer counts, from when it was asked for.
//
// All fields belong to the goroutine of run.
type warden struct {
	in, out *os.File
	rules   watch
	clock   interface{ Monotonic() time.Duration }
	command []string
	env     []string

	term    terminal
	group   int // of COMMAND, whose process id it is; 0 before it is started
	changes chan change
	code    int  // of COMMAND, once it has ended
	over    bool // COMMAND has ended
	empty   bool // and so have all in its group: the number may soon be another's
	killed  bool // there was a need to
	done    bool // nothing is left
}

// change is a process of this one's that has ended, or was stopped.
type change struct {
	pid    int
	status syscall.WaitStatus
}

// run returns when nothing of COMMAND is left, or it was not started.
func (w *warden) run() {
	// What is to die with its parent dies with the thread that started it.
	runtime.LockOSThread()
	// The signals are lock's to pass on. They are caught, to no effect, and not ignored,
	// since COMMAND would inherit the latter.
	catchSignals()
	w.term = findTerminal()
	adoptOrphans()
	notes := make(chan note)
	go readNotes(w.in, notes) // until this process ends
	timer := time.NewTimer(0)
	for !w.done {
		select {
		case n, ok := <-notes:
			if !ok {
				notes = nil
				w.rules.kill()
			}
			w.heed(n)
		case c, ok := <-w.changes:
			if !ok {
				w.changes = nil
			}
			w.note(c)
		case <-timer.C:
		}
		timer.Reset(w.look())
	}
}

// heed does what lock says.
func (w *warden) heed(n note) {
	switch n.word {
	case noteLeft:
		w.rules.answered(time.Duration(n.number))
	case noteFence:
		w.rules.fence()
	case noteKill:
		w.rules.kill()
	case noteSignal:
		if s := syscall.Signal(n.number); s == syscall.SIGCONT {
			w.term.give(w.group)
		}
		w.signal(syscall.Signal(n.number))
	}
}

// signal sends s to COMMAND's process group, if there is one.
func (w *warden) signal(s syscall.Signal) {
	if w.group != 0 && !w.empty {
		_ = syscall.Kill(-w.group, s) // it fails only if the group is empty by now
	}
}

// note takes in a change of a process.
func (w *warden) note(c change) {
	switch {
	case c.pid != w.group || w.over || w.group == 0:
	case c.status.Stopped():
		if c.status.StopSignal() == syscall.SIGTSTP && w.term.given {
			// Ctrl-Z: nobody could continue it, since the shell knows of lock only.
			w.signal(syscall.SIGCONT)
		}
	case c.status.Exited():
		w.over, w.code = true, c.status.ExitStatus()
	case c.status.Signaled():
		w.over, w.code = true, exitSignal+int(c.status.Signal())
	}
	if w.over {
		w.rules.over(w.clock.Monotonic())
		w.empty = w.empty || groupGone(w.group)
	}
}

// look reads the clock, does what is due, and returns when to look again.
func (w *warden) look() time.Duration {
	do, pause := w.rules.look(w.clock.Monotonic())
	switch do {
	case doAsk:
		note{word: noteAsk}.send(w.out)
	case doStart:
		w.start()
	case doFence:
		w.signal(syscall.SIGTERM)
		w.signal(syscall.SIGCONT) // what is stopped has to hear of it
		w.tellFenced()
	case doKill:
		w.kill()
	}
	if w.over && w.changes == nil && groupGone(w.group) {
		w.end()
	}
	return pause
}

// tellFenced tells lock, unless COMMAND had ended by itself before.
func (w *warden) tellFenced() {
	if !w.over {
		note{word: noteFenced}.send(w.out)
	}
}

// kill ends what there is. What it leaves orphaned is there the next time.
func (w *warden) kill() {
	if !w.killed && !w.over {
		w.tellFenced()
		note{word: noteKilled}.send(w.out)
	}
	w.killed = true
	if w.group == 0 { // too late to start it at all
		w.end()
		return
	}
	w.signal(syscall.SIGKILL)
	killChildren()
}

func (w *warden) end() {
	w.done = true
	w.term.takeBack()
	note{word: noteEnded, number: int64(w.code)}.send(w.out)
}

// start starts COMMAND.
func (w *warden) start() {
	path, err := exec.LookPath(w.command[0])
	if err == nil {
		w.group, err = syscall.ForkExec(path, w.command, &syscall.ProcAttr{
			Env: w.env, Files: []uintptr{0, 1, 2}, Sys: commandAttributes(),
		})
	}
	if err != nil {
		failure := notStarted(w.command[0], err)
		note{word: noteFailed, number: int64(failure.code), text: err.Error()}.send(w.out)
		w.done = true
		return
	}
	note{word: noteStarted, number: int64(w.group)}.send(w.out)
	w.term.give(w.group)
	w.changes = make(chan change)
	go waitForAll(w.changes)
}

// waitForAll sends each change of a process to changes, and closes it when no process
// is left.
func waitForAll(changes chan<- change) {
	defer close(changes)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch err {
		case nil:
			changes <- change{pid, status}
		case syscall.EINTR:
		default:
			return // there are none
		}
	}
}
