//go:build unix && !linux

package cluster

import "syscall"

// attributes put a node in a process group of its own, so that Ctrl-C in a terminal
// reaches the harness alone.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
