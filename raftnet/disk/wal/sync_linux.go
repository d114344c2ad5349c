package wal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes durable what was written to f, and its size, but not its times.
func syncData(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			failed = unix.Fdatasync(int(fd))
			if !errors.Is(failed, unix.EINTR) {
				return
			}
		}
	})
	if err == nil && failed != nil {
		err = &os.PathError{Op: "fdatasync", Path: f.Name(), Err: failed}
	}
	return err
}
