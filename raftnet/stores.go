package raftnet

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
)

// LogFile is the file in a data directory that has the log and the vote.
const LogFile = "raft.db"

// Stores are where raft keeps what it must not lose.
type Stores struct {
	Logs      raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
	// Close closes them all.
	Close func() error
}

// snapshotsKept is one to use and one to fall back on.
const snapshotsKept = 2

// OpenStores opens the stores in dir, making them if there are none: the log and the
// vote in one bbolt file, fsynced at every write, and snapshots as files.
func OpenStores(dir string, logger hclog.Logger) (Stores, error) {
	path := filepath.Join(dir, LogFile)
	db, err := openLog(path)
	if err != nil {
		return Stores{}, fmt.Errorf("open the log %s: %w", path, err)
	}
	snapshots, err := raft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, logger)
	if err != nil {
		return Stores{}, errors.Join(fmt.Errorf("open the snapshots in %s: %w", dir, err), db.Close())
	}
	return Stores{Logs: db, Stable: db, Snapshots: snapshots, Close: db.Close}, nil
}

func openLog(path string) (db *raftboltdb.BoltStore, err error) {
	defer func() { // bbolt panics on pages that make no sense
		if fault := recover(); fault != nil {
			db, err = nil, fmt.Errorf("the file is damaged: put it back from a copy, or remove this node from its cluster and add it anew: %v", fault)
		}
	}()
	return raftboltdb.New(raftboltdb.Options{
		Path: path,
		// The list of free pages grows with the file, and is found again at start.
		BoltOptions: &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
	})
}
