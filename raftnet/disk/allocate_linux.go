package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// allocate makes f size bytes long, with room on the disk for all of them.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return fill(f, size)
	}
	if err != nil {
		return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
	}
	return nil
}
