package disk

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// snapshotStore is raft's snapshots: a FileSnapshotStore, of which only what is whole
// is shown, so that raft takes the snapshot before one that is damaged or half-written.
//
// A failed write or fsync closes the latch. That the disk is full, or the process has
// too many files open, only fails the snapshot: nothing rests on it until it is
// finished. It is safe for concurrent use.
type snapshotStore struct {
	inner   *raft.FileSnapshotStore
	dir     string
	journal *journal
	latch   *latch
	space   *space
	logger  hclog.Logger
	metrics *metrics
	// newest is the newest usable snapshot, nil if there is none.
	newest atomic.Pointer[Snapshot]

	mu sync.Mutex
	// writing are the ids of the snapshots that are being written.
	writing map[string]bool
	// damaged are the ids of those that were found so.
	damaged map[string]bool
}

// snapshotsKept is one to use and one to fall back on.
const snapshotsKept = 2

// openSnapshots opens the snapshots in cfg.Dir and removes what earlier processes have
// not finished.
func openSnapshots(cfg Config, s *Stores) (*snapshotStore, error) {
	// What is kept is decided here: FileSnapshotStore would count damaged ones too.
	inner, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, math.MaxInt, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("open the snapshots in %s: %w", cfg.Dir, err)
	}
	store := &snapshotStore{
		inner: inner, dir: filepath.Join(cfg.Dir, snapshotsDir), journal: s.journal, latch: s.latch, space: s.space, logger: cfg.Logger,
		metrics: s.metrics, writing: map[string]bool{}, damaged: map[string]bool{},
	}
	store.sweepLocked()
	return store, nil
}

// Create begins a snapshot. One that is older than what the log was shortened to is
// refused: with it the node would go back.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, trans raft.Transport) (raft.SnapshotSink, error) {
	if err := s.latch.failure(); err != nil {
		return nil, err
	}
	if covered := s.journal.head().covered; index < covered {
		return nil, fmt.Errorf("a snapshot of %d is older than that of %d which is here", index, covered)
	}
	if err := s.space.admit(0); err != nil {
		s.metrics.unsaved.Inc()
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	inner, err := s.inner.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		s.sweepLocked()
		s.metrics.unsaved.Inc()
		return nil, s.judge(err)
	}
	s.writing[inner.ID()] = true
	return &sink{inner: inner, store: s, index: index}, nil
}

// List returns the usable snapshots, newest first, at most two. All of each is read
// for that.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	found, _, err := listSnapshots(s.dir)
	if err != nil {
		return nil, err
	}
	var usable []*raft.SnapshotMeta
	for i := range found {
		verifySnapshot(s.dir, &found[i])
		if found[i].Damage != nil {
			s.passOver(&found[i])
			continue
		}
		if len(usable) == 0 {
			s.newest.Store(&found[i])
		}
		if usable = append(usable, found[i].meta); len(usable) == snapshotsKept {
			break
		}
	}
	return usable, nil
}

// passOver says once that a snapshot is not used.
func (s *snapshotStore) passOver(found *Snapshot) {
	s.mu.Lock()
	known := s.damaged[found.ID]
	s.damaged[found.ID] = true
	s.mu.Unlock()
	if !known {
		s.logger.Warn("a snapshot is damaged and not used", "snapshot", found.ID, "error", found.Damage)
	}
}

// Open opens a snapshot whose content has been verified; a [*CorruptError] if it is
// damaged.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, _, err := readSnapshotMeta(filepath.Join(s.dir, id))
	if err != nil {
		return nil, nil, err
	}
	_, state, err := s.inner.Open(id)
	if err != nil {
		found := Snapshot{ID: id, Index: meta.Index, Term: meta.Term}
		if verifySnapshot(s.dir, &found); found.Damage != nil {
			err = found.Damage
		}
		return nil, nil, err
	}
	return meta, state, nil
}

// judge returns the latch's error if err is a failure of the disk, and err if not.
func (s *snapshotStore) judge(err error) error {
	var number syscall.Errno
	if !errors.As(err, &number) {
		return err
	}
	for _, passing := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, passing) {
			return err
		}
	}
	return s.latch.trip(opSnapshot, err)
}

// sweepLocked removes what was not finished, and nobody is writing.
func (s *snapshotStore) sweepLocked() {
	_, others, err := listSnapshots(s.dir)
	if err != nil {
		s.logger.Warn("unfinished snapshots are not removed", "error", err)
		return
	}
	for _, name := range others {
		if !isUnfinished(name) || s.writing[name[:len(name)-len(unfinished)]] {
			continue
		}
		// A FileSnapshotStore's sink that could not be finished leaves its file open,
		// and what is removed takes up its room for as long.
		folder := filepath.Join(s.dir, name)
		_ = os.Truncate(filepath.Join(folder, stateFile), 0)
		if err := os.RemoveAll(folder); err != nil {
			s.logger.Warn("an unfinished snapshot is not removed", "snapshot", name, "error", err)
		}
	}
}

// prune removes all but the newest usable snapshots. Damaged ones go when they are
// older than those.
func (s *snapshotStore) prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, _, err := listSnapshots(s.dir)
	if err != nil {
		s.logger.Warn("old snapshots are not removed", "error", err)
		return
	}
	kept := 0
	for _, old := range found {
		folder := filepath.Join(s.dir, old.ID)
		if kept == snapshotsKept {
			if err := os.RemoveAll(folder); err != nil {
				s.logger.Warn("an old snapshot is not removed", "snapshot", old.ID, "error", err)
			}
			delete(s.damaged, old.ID)
			continue
		}
		if _, _, err := readSnapshotMeta(folder); err == nil && !s.damaged[old.ID] {
			kept++
		}
	}
}

// sink is a snapshot that is being written. It is used by one goroutine.
type sink struct {
	inner raft.SnapshotSink
	store *snapshotStore
	index uint64
	ended bool
	err   error // of the end
}

func (k *sink) ID() string { return k.inner.ID() }

// Write fails with a [*FullError] while the disk is full.
func (k *sink) Write(b []byte) (int, error) {
	if err := k.store.latch.failure(); err != nil {
		return 0, err
	}
	if err := k.store.space.admit(uint64(len(b))); err != nil {
		return 0, err
	}
	n, err := k.inner.Write(b)
	if err != nil {
		return n, k.store.judge(err)
	}
	return n, nil
}

// Close finishes the snapshot; when it returns nil, this is durable and may be relied
// on. A second call returns what the first did.
func (k *sink) Close() error {
	return k.end(func() error {
		folder := filepath.Join(k.store.dir, k.ID())
		if err := k.inner.Close(); err != nil {
			return k.store.judge(err)
		}
		if err := writeSum(folder); err != nil {
			return k.store.judge(err)
		}
		if err := k.store.journal.cover(k.index); err != nil {
			return err
		}
		if found, ok := parseSnapshot(k.ID()); ok {
			if info, err := os.Stat(filepath.Join(folder, stateFile)); err == nil {
				found.Size = info.Size()
			}
			k.store.newest.Store(&found)
		}
		return nil
	})
}

// Cancel gives the snapshot up. After Close it does nothing.
func (k *sink) Cancel() error {
	if k.ended {
		return nil
	}
	_ = k.end(func() error { return errors.Join(errCancelled, k.inner.Cancel()) })
	return nil
}

var errCancelled = errors.New("the snapshot was given up")

func (k *sink) end(do func() error) error {
	if k.ended {
		return k.err
	}
	k.ended = true
	if k.err = k.store.latch.failure(); k.err == nil {
		k.err = do()
	}
	s := k.store
	s.mu.Lock()
	delete(s.writing, k.ID())
	if k.err != nil {
		s.metrics.unsaved.Inc()
		s.sweepLocked()
	}
	s.mu.Unlock()
	if k.err == nil {
		s.prune()
	}
	return k.err
}
