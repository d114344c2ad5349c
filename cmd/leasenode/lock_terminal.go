//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal that standard input is, if it is one, with the process group
// of lock: while that has the foreground, COMMAND gets it.
type terminal struct {
	lockGroup int // 0 if there is no terminal
	given     bool
}

// findTerminal is called by the guard.
func findTerminal() terminal {
	group, err := unix.Getpgid(os.Getppid())
	if _, none := foreground(); err != nil || none != nil {
		return terminal{}
	}
	return terminal{lockGroup: group}
}

func foreground() (group int, err error) { return unix.IoctlGetInt(0, unix.TIOCGPGRP) }

// give gives the foreground to a process group if lock has it. What the group has tried
// meanwhile in the background, it can go on with.
func (t *terminal) give(group int) {
	if front, err := foreground(); t.lockGroup == 0 || err != nil || front != t.lockGroup {
		return
	}
	// Who is in the background may do that only if this is ignored. COMMAND is started,
	// and has not inherited it.
	signal.Ignore(syscall.SIGTTOU)
	if unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) == nil {
		t.given = true
		_ = syscall.Kill(-group, syscall.SIGCONT)
	}
}

// takeBack gives the foreground back to lock.
func (t *terminal) takeBack() {
	if t.given {
		// It fails if the terminal is gone.
		_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, t.lockGroup)
	}
}
