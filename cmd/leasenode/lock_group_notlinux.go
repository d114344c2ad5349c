//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// adoptOrphans has no counterpart here: orphans go to the first process.
func adoptOrphans() {}

// commandAttributes puts COMMAND in a process group of its own.
func commandAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killChildren has nothing to do: who has left the process group cannot be found here.
func killChildren() {}

// groupGone reports whether nobody is left in a process group that COMMAND led. One of
// whom only zombies are left can be asked for, but not signalled.
func groupGone(group int) bool { return syscall.Kill(-group, 0) != nil }

// thisProgram is the file to start this program from.
func thisProgram() (string, error) { return os.Executable() }
