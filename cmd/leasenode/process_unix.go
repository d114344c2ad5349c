//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// openLifeline opens an inherited pipe so that Close ends a Read that waits.
func openLifeline(fd uintptr) (*os.File, error) {
	if err := syscall.SetNonblock(int(fd), true); err != nil {
		return nil, fmt.Errorf("set file descriptor %d to non-blocking: %w", fd, err)
	}
	return os.NewFile(fd, "lifeline"), nil
}
