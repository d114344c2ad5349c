package disk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// SpareFile is the file in a data directory that only takes up room: it is given back
// when the disk is full to the last byte, so that a node can still write who it is and
// what it has voted.
const SpareFile = "spare"

const (
	spareBytes = 4 << 20
	// startBytes have to be free for a start.
	startBytes = 1 << 20
	roomPause  = time.Second
)

// spare is the spare file. Its methods are called by one goroutine at a time.
type spare struct {
	dir string
	// made is set once the file is known to be there.
	made bool
}

func (s *spare) path() string { return filepath.Join(s.dir, SpareFile) }

// make makes the file, if it is not there as a whole.
func (s *spare) make() error {
	if s.made {
		return nil
	}
	info, err := os.Stat(s.path())
	if err == nil && info.Size() == spareBytes {
		s.made = true
		return nil
	}
	f, err := os.OpenFile(s.path(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(allocate(f, spareBytes), f.Close()); err != nil {
		return errors.Join(err, os.Remove(s.path()))
	}
	s.made = true
	return nil
}

// give removes the file, and reports whether there was one.
func (s *spare) give() (bool, error) {
	s.made = false
	err := os.Remove(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// AwaitRoom waits until there is as much space as a start needs, and gives the spare
// file back if that helps. A node calls it before it writes anything, so that one
// which was ended by a full disk waits rather than starts and ends again and again.
// Of cfg it uses Dir, Logger and Free. The error is ctx's, or says that it cannot be
// told how much is free.
func AwaitRoom(ctx context.Context, cfg Config) error {
	cfg = cfg.withDefaults()
	ticker := time.NewTicker(roomPause)
	defer ticker.Stop()
	for tries := 0; ; tries++ {
		free, err := cfg.Free(cfg.Dir)
		if err != nil {
			return fmt.Errorf("look how much space is free in %s: %w", cfg.Dir, err)
		}
		if free >= startBytes {
			return nil
		}
		given, err := (&spare{dir: cfg.Dir}).give()
		if given {
			cfg.Logger.Warn("the disk is full: the spare file is given back", "dir", cfg.Dir)
			continue
		}
		if tries == 0 {
			cfg.Logger.Warn("the disk is full: the start waits for space", "dir", cfg.Dir, "free", free, "needed", startBytes, "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for space in %s: %w", cfg.Dir, context.Cause(ctx))
		case <-ticker.C:
		}
	}
}
