package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// lockDirectory makes the data directory, if needed, and takes it for this process.
// The lock ends with the process, however it ends.
func lockDirectory(dir string) (*flock.Flock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data-dir: make %s: %w", dir, err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	taken, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("data-dir: %s cannot be used: %w", dir, err)
	}
	if !taken {
		return nil, errors.Join(fmt.Errorf("data-dir: %s is in use by another process: give each node a directory of its own, or stop the other one", dir), lock.Close())
	}
	return lock, nil
}
