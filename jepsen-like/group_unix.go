//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup gives a command a process group of its own: signals of the terminal are for
// the harness alone, and what the command starts can be stopped with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func standStill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGSTOP) }
func goOn(cmd *exec.Cmd) error       { return syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT) }
func askToEnd(cmd *exec.Cmd) error   { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killAll(cmd *exec.Cmd) error    { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
