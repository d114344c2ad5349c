//go:build linux || darwin || freebsd

package wal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lockExclusive keeps out all others. The lock ends with the file.
func lockExclusive(f *os.File) error { return flock(f, unix.LOCK_EX) }

// lockShared keeps out who wants to be alone.
func lockShared(f *os.File) error { return flock(f, unix.LOCK_SH) }

func flock(f *os.File, how int) error {
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrInUse
	}
	if err != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}
