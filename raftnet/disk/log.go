package disk

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// logStore is raft's log. Every entry is verified when it is read, and what the log
// has is always one range without a hole: what would leave one is refused, and closes
// the latch, since raft has then gone astray.
//
// After a snapshot that is ahead of the log raft appends behind a gap. What is before
// the gap is in the snapshot, and is deleted in the same transaction.
//
// It is safe for concurrent use; reads do not wait for writes.
type logStore struct {
	journal *journal
	guard   *guard
	space   *space
	// owed says that entries were cut off the end, and what replaces them must not be
	// refused for lack of space: raft would go on as if the old ones were there. The
	// holder of the journal's writing has it.
	owed bool
}

// FirstIndex returns the index of the first entry, 0 if there is none.
func (l *logStore) FirstIndex() (uint64, error) { return l.journal.head().first, nil }

// LastIndex returns the index of the last entry, 0 if there is none.
func (l *logStore) LastIndex() (uint64, error) { return l.journal.head().last, nil }

// GetLog puts the entry at index into log. Outside of the log the error is
// [raft.ErrLogNotFound]; if the entry is not what was written, a [*CorruptError]
// within a [*StorageError].
func (l *logStore) GetLog(index uint64, log *raft.Log) error {
	v, err := l.journal.entry(index)
	if err != nil {
		return err
	}
	decodeEntry(index, v, log)
	return nil
}

// StoreLog appends one entry.
func (l *logStore) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs appends entries, all or none, and returns when they are durable. While
// the disk is full it refuses with a [*FullError] before anything is touched; any
// other error is the latch's.
func (l *logStore) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	j := l.journal
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.latch.failure(); err != nil {
		return err
	}
	c, next, err := l.appendLocked(logs)
	if err != nil {
		return j.latch.trip(opAppend, err)
	}
	if err := l.admit(c, next); err != nil {
		return err
	}
	if err := j.write(c, next); err != nil {
		return err
	}
	l.owed = false
	return nil
}

// admit returns an error unless c, with the head next, may be and can be written.
func (l *logStore) admit(c Change, next *head) error {
	size := uint64(0)
	for _, e := range c.Put {
		size += uint64(len(e.Value))
	}
	if l.owed {
		return nil
	}
	if err := l.space.admit(size); err != nil {
		return err
	}
	c.Head = next.encode()
	room, err := l.guard.makeRoom(c)
	if err == nil && !room {
		err = l.space.exhausted()
	}
	return err
}

// appendLocked returns the change that appends logs, and the head after it.
func (l *logStore) appendLocked(logs []*raft.Log) (Change, *head, error) {
	c, next := Change{}, *l.journal.head()
	if begin := logs[0].Index; next.last == 0 || begin != next.last+1 {
		if begin == 0 || begin <= next.last || begin > next.covered+1 {
			return c, nil, fmt.Errorf("entry %d would come after %d, and snapshots have everything up to %d", begin, next.last, next.covered)
		}
		c.Delete = Range{next.first, next.last}
		next.first, next.before, next.sum = begin, 0, 0
		next.last = begin - 1
	}
	for _, log := range logs {
		if log.Index != next.last+1 {
			return c, nil, fmt.Errorf("entry %d would come after %d", log.Index, next.last)
		}
		v, err := encodeEntry(log, next.sum)
		if err != nil {
			return c, nil, err
		}
		c.Put = append(c.Put, Entry{log.Index, v})
		next.last, next.sum = log.Index, entrySum(v)
	}
	return c, &next, nil
}

// DeleteRange deletes the entries from low to high, as far as there are any: from the
// first on, up to what snapshots have, to make the log shorter; or up to the last, to
// replace what this node has and the leader has not. Only the latter is refused while
// the disk is full.
func (l *logStore) DeleteRange(low, high uint64) error {
	j := l.journal
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.latch.failure(); err != nil {
		return err
	}
	h := j.head()
	low, high = max(low, h.first), min(high, h.last)
	if h.first == 0 || low > high {
		return nil
	}
	switch {
	case low == h.first && high <= h.covered:
		return l.deleteFrontLocked(high)
	case high == h.last:
		if err := l.space.admit(0); err != nil {
			return err
		}
		return l.deleteEndLocked(low)
	default:
		err := fmt.Errorf("entries %d to %d of %d to %d were to be deleted, and snapshots have everything up to %d", low, high, h.first, h.last, h.covered)
		return j.latch.trip(opDelete, err)
	}
}

func (l *logStore) deleteFrontLocked(high uint64) error {
	next := *l.journal.head()
	c := Change{Delete: Range{next.first, high}}
	if high == next.last {
		next.first, next.last, next.before, next.sum = 0, 0, 0, 0
		return l.journal.write(c, &next)
	}
	v, err := l.journal.entryLocked(high)
	if err != nil {
		return err
	}
	next.first, next.before = high+1, entrySum(v)
	return l.journal.write(c, &next)
}

func (l *logStore) deleteEndLocked(low uint64) error {
	next := *l.journal.head()
	c := Change{Delete: Range{low, next.last}}
	if low == next.first {
		next.first, next.last, next.before, next.sum = 0, 0, 0, 0
	} else {
		v, err := l.journal.entryLocked(low - 1)
		if err != nil {
			return err
		}
		next.last, next.sum = low-1, entrySum(v)
	}
	if err := l.journal.write(c, &next); err != nil {
		return err
	}
	l.owed = true
	return nil
}
