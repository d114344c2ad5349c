package disk

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// journal is what the log and the vote share: one head, which every write replaces.
type journal struct {
	medium Medium
	path   string
	// bytes returns how much room the log takes.
	bytes func() int64
	latch *latch

	// writing is held by whoever writes. A write that hangs does not hold up who only
	// wants to know the head.
	writing sync.Mutex
	newest  atomic.Pointer[head]
}

func (j *journal) head() *head { return j.newest.Load() }

// write does c and makes next the head. The caller holds writing.
func (j *journal) write(c Change, next *head) error {
	c.Head = next.encode()
	if err := j.medium.Write(c); err != nil {
		return err
	}
	j.newest.Store(next)
	return nil
}

// cover notes that there is a usable snapshot with everything up to index.
func (j *journal) cover(index uint64) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	next := *j.head()
	if index <= next.covered {
		return nil
	}
	next.covered = index
	return j.write(Change{}, &next)
}

// entry returns the verified entry at index, [raft.ErrLogNotFound] if it is outside of
// the log. Damage closes the latch.
func (j *journal) entry(index uint64) ([]byte, error) {
	v, err := j.medium.Read(index)
	if err != nil {
		return nil, err
	}
	if h := j.head(); v == nil && (h.first == 0 || index < h.first || index > h.last) {
		return nil, raft.ErrLogNotFound
	}
	if v != nil {
		return v, j.verify(index, v)
	}
	// A deletion and an append may have passed between the two looks.
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.entryLocked(index)
}

// entryLocked is entry for one who holds writing.
func (j *journal) entryLocked(index uint64) ([]byte, error) {
	h := j.head()
	if h.first == 0 || index < h.first || index > h.last {
		return nil, raft.ErrLogNotFound
	}
	v, err := j.medium.Read(index)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, j.damaged(index, fmt.Sprintf("it is missing; the log is %d to %d", h.first, h.last))
	}
	return v, j.verify(index, v)
}

func (j *journal) verify(index uint64, v []byte) error {
	if err := verifyEntry(index, v); err != nil {
		return j.damaged(index, err.Error())
	}
	return nil
}

func (j *journal) damaged(index uint64, problem string) error {
	return j.latch.trip(opRead, corruptEntry(j.path, index, problem))
}
