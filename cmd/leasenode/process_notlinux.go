//go:build unix && !linux

package main

import "syscall"

// nodeAttributes puts a node in a process group of its own, so that Ctrl-C in the
// terminal reaches dev alone, which then stops the nodes in order. A node whose dev
// is killed notices by its lifeline.
func nodeAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
