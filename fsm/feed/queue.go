package feed

import (
	"sync"

	"github.com/leasenode/leasenode/lease"
)

// Entry is what one log entry did.
type Entry struct {
	// Index is the log index. Invariant: ascending.
	Index uint64
	// Now is the cluster clock after it. Invariant: never descending.
	Now lease.Instant
	// Changes are what it granted, in order.
	Changes []Change
	// Bytes is about how much memory the entry keeps alive.
	Bytes int
}

// Change is one granted operation.
type Change struct {
	Op lease.Op
	// Before has epoch 0 if the key was never granted.
	Before, After lease.Record
}

// queue is what was applied and not turned into events yet. It is safe for concurrent
// use; whoever adds waits for nobody.
type queue struct {
	maxBytes int

	mu      sync.Mutex
	grown   sync.Cond // on mu: added, void or closed has changed
	entries []Entry
	first   int // of entries: those before it were taken
	bytes   int
	added   uint64 // the index of the latest entry ever added
	// void says that entries are missing: what is waiting is worth nothing, the state
	// has to be looked at anew.
	void   bool
	closed bool
	more   chan struct{} // has a token if there may be something to take
}

func newQueue(maxBytes int) *queue {
	q := &queue{maxBytes: maxBytes, more: make(chan struct{}, 1)}
	q.grown.L = &q.mu
	return q
}

// add appends entries. If there are too many for the bound, all are dropped and the
// queue is void.
func (q *queue) add(entries []Entry) {
	q.mu.Lock()
	for _, e := range entries {
		q.bytes += e.Bytes
	}
	q.added = entries[len(entries)-1].Index
	if q.bytes > q.maxBytes {
		q.voidLocked()
	}
	if !q.void && !q.closed {
		q.entries = append(q.entries, entries...)
	}
	q.grown.Broadcast()
	q.mu.Unlock()
	q.poke()
}

// reset says that the state is another one from here on.
func (q *queue) reset() {
	q.mu.Lock()
	q.voidLocked()
	q.grown.Broadcast()
	q.mu.Unlock()
	q.poke()
}

func (q *queue) voidLocked() { q.void, q.entries, q.first, q.bytes = true, nil, 0, 0 }

func (q *queue) poke() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// take removes and returns the oldest entry. If the queue is void there is none.
func (q *queue) take() (e Entry, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.void || q.first == len(q.entries) {
		return Entry{}, false
	}
	e = q.entries[q.first]
	q.entries[q.first] = Entry{}
	q.bytes -= e.Bytes
	if q.first++; q.first == len(q.entries) {
		q.entries, q.first = q.entries[:0], 0
	}
	return e, true
}

func (q *queue) isVoid() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.void
}

// restart ends being void: what is added from here on counts. The caller looks at the
// state afterwards.
func (q *queue) restart() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.void = false
}

// since waits until the entry at last has been added, and returns what waits. It reports
// false if the queue is void or closed. The entries are valid until the next take.
func (q *queue) since(last uint64) (waiting []Entry, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.added < last && !q.void && !q.closed {
		q.grown.Wait()
	}
	if q.void || q.closed {
		return nil, false
	}
	return q.entries[q.first:], true
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.voidLocked()
	q.grown.Broadcast()
	q.mu.Unlock()
}
