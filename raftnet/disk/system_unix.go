//go:build linux || darwin || freebsd

package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// freeBytes returns what an unprivileged process can still write to the file system
// that dir is on.
func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}

// lockShared takes the lock that bbolt takes exclusively. It ends with the file.
func lockShared(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return &inUseError{f.Name()}
	}
	if err != nil {
		return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
	}
	return nil
}
