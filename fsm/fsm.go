package fsm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// Config is what an FSM is opened with.
type Config struct {
	// Dir is the folder of the state file, made if it is missing. State files found
	// there are deleted. One FSM at a time may use it; nothing here makes sure of it.
	Dir string
	// Logger may be nil.
	Logger hclog.Logger
	// OnFailure is called once, with the first error that must stop the node, on the
	// goroutine that has met it: that of a reader, or the one that applies entries, before
	// they are answered. It must not wait for raft. May be nil.
	OnFailure func(error)
	// Feed bounds what is kept for watchers.
	Feed feed.Bounds
}

// FSM is the replicated state machine. It implements [raft.BatchingFSM]. Apply,
// ApplyBatch, Snapshot and Restore are raft's to call, one at a time; everything
// else is safe for concurrent use with them and with itself.
type FSM struct {
	dir       string
	logger    hclog.Logger
	onFailure func(error)

	// writing is held by whatever changes the state.
	writing sync.Mutex
	files   int // state files made so far; guarded by writing
	// over has what was applied and is not in the state file yet; nil if nothing.
	// Guarded by writing.
	over *overlay
	// failed is the error that latched the FSM; written under writing.
	failed atomic.Pointer[error]

	// swapping guards live, which is nil once closed.
	swapping sync.RWMutex
	live     *store

	recent recent

	feed *feed.Feed
}

var _ raft.BatchingFSM = (*FSM)(nil)

// Open deletes what an earlier life left in the folder and starts with an empty
// state, at index 0. The caller has to Close it.
func Open(config Config) (*FSM, error) {
	f := &FSM{dir: config.Dir, logger: config.Logger, onFailure: config.OnFailure}
	if f.logger == nil {
		f.logger = hclog.NewNullLogger()
	}
	if f.onFailure == nil {
		f.onFailure = func(error) {}
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the state file: %w", err)
	}
	old, err := filepath.Glob(filepath.Join(f.dir, filePattern))
	if err != nil {
		return nil, fmt.Errorf("looking for old state files: %w", err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("deleting an old state file: %w", err)
		}
	}
	if f.live, err = f.createStore(); err != nil {
		return nil, err
	}
	f.recent.values = map[string][]byte{}
	f.feed = feed.Open(feedState{f}, config.Feed)
	return f, nil
}

// Feed returns the events of what is applied. It is closed with f.
func (f *FSM) Feed() *feed.Feed { return f.feed }

func (f *FSM) createStore() (*store, error) {
	f.files++
	return createStore(f.dir, f.files)
}

// Close ends the use of the state and deletes its file, as soon as the snapshots
// and views that are reading it are done. Everything is answered with [ErrClosed]
// from then on. Closing again does nothing.
func (f *FSM) Close() error {
	f.feed.Close()
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.letGo(f.swap(nil))
}

// swap makes next the state in use, and returns the one before.
func (f *FSM) swap(next *store) *store {
	f.swapping.Lock()
	defer f.swapping.Unlock()
	old := f.live
	f.live = next
	return old
}

// letGo lets go of the state that was in use, nil for none, and of what was to be
// written to it. The caller holds writing.
func (f *FSM) letGo(old *store) error {
	if f.over != nil {
		f.over.abandon()
		f.over = nil
	}
	if old == nil {
		return nil
	}
	return old.release()
}

// use returns the state in use; the caller has to release it.
func (f *FSM) use() (*store, error) {
	f.swapping.RLock()
	defer f.swapping.RUnlock()
	if f.live == nil {
		return nil, ErrClosed
	}
	f.live.users.Add(1)
	return f.live, nil
}

// Apply applies one log entry, as [FSM.ApplyBatch] does.
func (f *FSM) Apply(log *raft.Log) any { return f.ApplyBatch([]*raft.Log{log})[0] }

// ApplyBatch applies log entries in one transaction and returns a response for
// each: for an opening an [Opened]; for a batch a [][lease.Outcome] with one for
// each mutation, in order, or a [*TermError]; for an entry that is no command nil.
//
// On the first error that must stop the node, the entries before it are applied
// and answered, nothing of it is, and from then on every entry is answered with
// that error. If the local state file fails, nothing of the whole call is answered.
// What comes after [FSM.Close] is answered with [ErrClosed].
//
// The state file gets what was applied now and then, and before it is read as a whole.
func (f *FSM) ApplyBatch(logs []*raft.Log) []any {
	var responses []any
	err := f.change(func() (err error) {
		if err = f.failure(); err == nil {
			responses, err = f.applyBatch(logs)
		}
		return err
	})
	for len(responses) < len(logs) {
		responses = append(responses, err)
	}
	return responses
}

// change calls do, which may change the state file, with writing held. The first error
// latches the FSM.
func (f *FSM) change(do func() error) error {
	f.writing.Lock()
	before := f.failure()
	err := do()
	latched := err != nil && before == nil && !errors.Is(err, ErrClosed)
	if latched {
		f.failed.Store(&err)
	}
	f.writing.Unlock()
	if latched {
		f.logger.Error("the state machine has stopped, and with it this node", "error", err)
		f.onFailure(err)
	}
	return err
}

// failure returns the error that latched the FSM, or nil.
func (f *FSM) failure() error {
	if failed := f.failed.Load(); failed != nil {
		return *failed
	}
	return nil
}

// applyBatch returns the responses to the entries that were applied, and why it
// stopped at the one after them.
func (f *FSM) applyBatch(logs []*raft.Log) ([]any, error) {
	o, err := f.overlay()
	if err != nil {
		return nil, err
	}
	o.begin()
	responses := make([]any, 0, len(logs))
	var stop error
	for _, log := range logs {
		var response any
		if response, stop = o.apply(log); stop != nil {
			stop = fmt.Errorf("applying log entry %d of term %d: %w", log.Index, log.Term, stop)
			break
		}
		responses = append(responses, response)
	}
	if o.damaged || len(responses) == 0 {
		return nil, stop
	}
	f.recent.publish(o.meta, o.batch)
	f.feed.Add(o.happened)
	if o.full() {
		if err := f.commitLocked(); err != nil {
			return nil, err
		}
	}
	return responses, stop
}

// overlay returns the open overlay, or a new one. The caller holds writing.
func (f *FSM) overlay() (*overlay, error) {
	if f.over != nil {
		return f.over, nil
	}
	s, err := f.use()
	if err != nil {
		return nil, err
	}
	defer f.leave(s)
	tx, err := s.db.Begin(true)
	if err != nil {
		return nil, fmt.Errorf("beginning a transaction: %w", err)
	}
	f.over = newOverlay(tx, f.recent.clock())
	return f.over, nil
}

// commitLocked brings what was applied into the state file. The caller holds writing.
func (f *FSM) commitLocked() error {
	o := f.over
	if o == nil {
		return nil
	}
	if o.damaged { // and the state file has not all that was answered
		return f.failure()
	}
	if err := o.commit(); err != nil {
		o.damaged = true
		return err
	}
	f.over = nil
	f.recent.committed()
	return nil
}

// leave ends a use of s. That a file which nobody uses any more cannot be closed
// or deleted is no harm to the state.
func (f *FSM) leave(s *store) {
	if err := s.release(); err != nil {
		f.logger.Warn("an old state file is left behind", "error", err)
	}
}

// Clock returns the cluster clock and the latest lease_until ever set, as of the
// last entry applied. It is cheap.
func (f *FSM) Clock() (now, latestEnd lease.Instant) {
	m := f.recent.clock()
	return m.now, m.latestEnd
}

// AppliedIndex returns the index of the last log entry that is applied and visible
// to views. Entries that raft keeps to itself (no-ops, barriers) are not counted
// until one that it does not follows.
func (f *FSM) AppliedIndex() uint64 { return f.recent.clock().index }

// Keys returns the number of records.
func (f *FSM) Keys() uint64 { return f.recent.clock().keys }

// Digests returns digests of the state after recent entries, ascending: after each of
// the last 16, and after those at indexes that are multiples of 64, at most 64 in
// all. None is known of the time before a start or a restore.
func (f *FSM) Digests() []Digest { return f.recent.digests() }
