package main

import "syscall"

// nodeAttributes puts a node in a process group of its own, so that Ctrl-C in the
// terminal reaches dev alone, which then stops the nodes in order. The kernel ends
// the node if dev is killed.
func nodeAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
