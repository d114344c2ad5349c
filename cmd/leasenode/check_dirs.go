package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// snapshotsDir is the folder of a data directory with the snapshots, and snapshotFile
// the file of each that has the state.
const (
	snapshotsDir = "snapshots"
	snapshotFile = "state.bin"
)

// nodeDirs returns the data directories in args, each of which is one or a folder of
// some. What is neither is an error.
func nodeDirs(args []string) ([]string, error) {
	var dirs []string
	for _, arg := range args {
		found, err := nodeDirsIn(arg)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

func nodeDirsIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", dir, err)
	}
	if hasNode(dir) {
		return []string{dir}, nil
	}
	// Of a cluster of dev it is known who should be there; who is not is told.
	if dirs := layoutDirs(dir); dirs != nil {
		return dirs, nil
	}
	var dirs []string
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); hasNode(path) {
			dirs = append(dirs, path)
		}
	}
	if dirs == nil {
		return nil, fmt.Errorf("%s is no data directory, nor a folder of some: a node's has %s, %s or %s, and %s", dir, raftnet.IdentityFile, disk.LogFile, disk.WALDir, snapshotsDir)
	}
	return dirs, nil
}

// hasNode reports whether there is anything of a node in dir.
func hasNode(dir string) bool {
	for _, name := range []string{raftnet.IdentityFile, disk.LogFile, disk.WALDir, snapshotsDir} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// layoutDirs returns the directories of the nodes of a cluster of dev in dir, nil if
// there is none.
func layoutDirs(dir string) []string {
	var layout devLayout
	text, err := os.ReadFile(filepath.Join(dir, layoutFile))
	if err != nil || json.Unmarshal(text, &layout) != nil || layout.Nodes > maxDevNodes {
		return nil
	}
	var dirs []string
	for k := range layout.Nodes {
		dirs = append(dirs, filepath.Join(dir, fmt.Sprintf("n%d", k+1)))
	}
	return dirs
}

// holdAll keeps nodes from being started in dirs until the function that it returns is
// called. It refuses if one runs.
func holdAll(dirs []string) (release func() error, err error) {
	var locks []*flock.Flock
	release = func() error {
		var errs []error
		for _, lock := range locks {
			errs = append(errs, lock.Close())
		}
		return errors.Join(errs...)
	}
	for _, dir := range dirs {
		// Opened so, the file is not made. A directory without one was never started in,
		// or is a copy.
		lock := flock.New(filepath.Join(dir, "lock"), flock.SetFlag(os.O_RDONLY))
		taken, err := lock.TryRLock()
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, errors.Join(fmt.Errorf("look whether a node runs in %s: %w", dir, err), release())
		case !taken:
			return nil, errors.Join(fmt.Errorf("a node is running in %s: stop it first, or check a copy of the directory that was made while it was stopped", dir), lock.Close(), release())
		}
		locks = append(locks, lock)
	}
	return release, nil
}
