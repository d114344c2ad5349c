//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// openLifeline refuses: this system has no inherited file descriptors.
func openLifeline(uintptr) (*os.File, error) { return nil, errors.ErrUnsupported }

// nodeAttributes asks for nothing special; starting a node with a lifeline is
// refused by the system's os/exec.
func nodeAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
