package raftnet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// call is one caller's mutations, waiting for their outcomes.
type call struct {
	ctx   context.Context // the caller's: what has not been packed when it ends is dropped
	items []item
	// patient is until when the items need no entry of their own: they travel with the
	// next that is packed for another reason, and get one at that moment if there is none.
	// The zero time is at once.
	patient time.Time
	left    atomic.Int64
	done    chan struct{} // closed when all have an outcome
}

// item is one mutation of a call, or a tick if it has none.
type item struct {
	call    *call
	body    []byte
	state   atomic.Int32
	outcome lease.Outcome // set before state is finished

	mutation *lease.Mutation // what body encodes
	to       string          // whom a release hands over to; empty for the first in line
	poll     *poll           // whose acquire it is, and who is told of its outcome instead of call
	why      cause           // why poll is tried out of the queue's order; empty if it is not
	nudge    bool            // no mutation, or one of poll: the first in line for the key is tried
}

// The states of an item. Whoever moves it from waiting decides whether it may ever
// be in the log.
const (
	waiting int32 = iota
	packed
	dropped
	finished
)

func newCall(ctx context.Context, bodies [][]byte) *call {
	c := &call{ctx: ctx, items: make([]item, len(bodies)), done: make(chan struct{})}
	for i, body := range bodies {
		c.items[i].call, c.items[i].body = c, body
	}
	c.left.Store(int64(len(bodies)))
	return c
}

// finish gives the item its outcome. It is called once, by who packed the item or
// dropped it.
func (it *item) finish(outcome lease.Outcome) {
	if it.poll != nil {
		it.poll.lines.settle(it, outcome)
		return
	}
	it.outcome = outcome
	it.state.Store(finished)
	if it.call.left.Add(-1) == 0 {
		close(it.call.done)
	}
}

// abandon returns the outcome for a caller that waits no longer, because of cause.
func (it *item) abandon(cause error) lease.Outcome {
	if it.state.CompareAndSwap(waiting, dropped) {
		return lease.Outcome{Err: fmt.Errorf("%w: it was still waiting to be proposed: %w", lease.ErrUnavailable, cause)}
	}
	if it.state.Load() == finished {
		return it.outcome
	}
	return lease.Outcome{Err: fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, cause)}
}

// maxQueueBytes bounds what waits to be proposed.
const maxQueueBytes = 64 << 20

// queue holds what waits to be packed, in the order in which it came.
type queue struct {
	// added gets a signal, never more than one pending.
	added chan struct{}

	mu     sync.Mutex
	items  []*item
	bytes  int
	closed bool
	// urgent is how many of items are of calls that are not patient, and until is when the
	// first of the patient ones ends its patience, or earlier: that of one that was
	// dropped counts still, so that whatever takes its place waits no longer than it.
	urgent int
	until  time.Time
}

func newQueue() *queue { return &queue{added: make(chan struct{}, 1)} }

// add puts all items of c at the end, or none.
func (q *queue) add(c *call) error {
	size := 0
	for i := range c.items {
		size += len(c.items[i].body)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return fmt.Errorf("this node is stopping: %w", lease.ErrUnavailable)
	}
	if q.bytes+size > maxQueueBytes {
		return &lease.ExhaustedError{Resource: "bytes of waiting requests", Limit: maxQueueBytes}
	}
	q.append(c)
	q.bytes += size
	signal(q.added)
	return nil
}

func (q *queue) append(c *call) {
	for i := range c.items {
		q.items = append(q.items, &c.items[i])
	}
	switch {
	case c.patient.IsZero():
		q.urgent += len(c.items)
	case q.until.IsZero() || c.patient.Before(q.until):
		q.until = c.patient
	}
}

// take removes items from the front until their bodies have most bytes, and marks
// them packed; those whose callers have gone are dropped.
func (q *queue) take(most int) []*item {
	q.mu.Lock()
	defer q.mu.Unlock()
	var taken []*item
	size, n := 0, 0
	for _, it := range q.items {
		if size+len(it.body) > most && len(taken) > 0 {
			break
		}
		n++
		q.bytes -= len(it.body)
		if it.call.patient.IsZero() {
			q.urgent--
		}
		if it.call.ctx.Err() != nil || !it.state.CompareAndSwap(waiting, packed) {
			continue
		}
		size += len(it.body)
		taken = append(taken, it)
	}
	clear(q.items[:n])
	q.items = q.items[n:]
	if len(q.items) == 0 {
		q.items, q.until = nil, time.Time{}
	}
	return taken
}

// length returns how many items wait.
func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.items)
}

// failAll ends everything that waits, as certainly not done.
func (q *queue) failAll(err error) {
	q.mu.Lock()
	items := q.items
	q.items, q.bytes, q.urgent, q.until = nil, 0, 0, time.Time{}
	q.mu.Unlock()
	for _, it := range items {
		if it.state.CompareAndSwap(waiting, packed) {
			it.finish(lease.Outcome{Err: err})
		}
	}
}

// closeWith adds one last call and refuses what comes later.
func (q *queue) closeWith(last *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.append(last)
	signal(q.added)
}

// patience returns how long what waits has no need of an entry of its own, and whether
// anything waits.
func (q *queue) patience() (left time.Duration, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.urgent > 0 || len(q.items) == 0 {
		return 0, q.urgent > 0
	}
	return time.Until(q.until), true
}
