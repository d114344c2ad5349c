package feed

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasenode/leasenode/lease"
)

// ErrClosed answers watchers once the feed was closed.
var ErrClosed = errors.New("the feed is closed")

// State is the state that the entries lead to. All methods are safe for concurrent
// use, and each looks at one state, that after the entry at index.
type State interface {
	// Leases calls yield with every key whose lease is not over and its end.
	Leases(yield func(key string, end lease.Instant)) (index uint64, now lease.Instant, err error)
	// Records returns the records of keys, in order; a missing one has epoch 0.
	Records(keys []string) (records []lease.Record, index uint64, err error)
}

// Bounds limit what a feed holds. A bound of 0 stands for its default.
type Bounds struct {
	// Events and Bytes limit what is kept of renewals, and again of all other events.
	// Default: 250,000 and 32 MiB.
	Events, Bytes int
	// QueueBytes limits what was applied and is not turned into events yet; with more
	// the feed gives up what it has kept and looks at the state anew. Default: 64 MiB.
	QueueBytes int
	// Watchers is how many there may be at a time. Default: 20,000.
	Watchers int
}

func (b Bounds) withDefaults() Bounds {
	for _, bound := range []struct {
		is   *int
		or   int
		unit int
	}{{&b.Events, 250, 1000}, {&b.Bytes, 32, 1 << 20}, {&b.QueueBytes, 64, 1 << 20}, {&b.Watchers, 20, 1000}} {
		if *bound.is == 0 {
			*bound.is = bound.or * bound.unit
		}
	}
	return b
}

// class tells renewals, of which there are many, from all other events.
const (
	lifecycle = 0
	renewals  = 1
)

// Feed makes events of log entries. [Feed.Add] and [Feed.Reset] are for whoever
// applies, one at a time; everything else is safe for concurrent use with them and with
// itself.
type Feed struct {
	state  State
	bounds Bounds
	queue  *queue

	ctx    context.Context // the component's lifetime
	cancel context.CancelFunc
	joined sync.WaitGroup

	// ends and skip belong to the goroutine. Entries up to skip are in ends already.
	ends ends
	skip uint64

	mu    sync.Mutex
	rings [2]ring
	// head is the latest entry that all events are known of, tail the place up to which
	// events are in the rings: beyond head while a long entry is being turned.
	head Head
	tail place
	// rebuilt is the place at which the feed began anew the last time.
	rebuilt  place
	watching interest
	watchers int
	// awaiting is closed and replaced when head moves; nil if nobody waits.
	awaiting chan struct{}
	err      error // why there are no more events
}

// Head is how far a feed has come.
type Head struct {
	Index uint64
	Now   lease.Instant
}

// Open returns the feed of a state without any entry. The caller has to Close it.
func Open(state State, bounds Bounds) *Feed {
	bounds = bounds.withDefaults()
	f := &Feed{state: state, bounds: bounds, queue: newQueue(bounds.QueueBytes), ends: newEnds(), watching: newInterest()}
	for class := range f.rings {
		f.rings[class] = ring{maxEvents: bounds.Events, maxBytes: bounds.Bytes}
	}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	f.joined.Go(f.turnLoop)
	return f
}

// Close ends all watching and returns when the goroutine has ended. Idempotent. The
// state must be usable until then.
func (f *Feed) Close() {
	f.cancel()
	f.queue.close()
	f.joined.Wait()
	f.end(ErrClosed)
}

// Add takes in what entries did. It waits for nobody.
func (f *Feed) Add(entries []Entry) {
	if len(entries) > 0 {
		f.queue.add(entries)
	}
}

// Reset says that the state was replaced by another. It waits for nobody.
func (f *Feed) Reset() { f.queue.reset() }

// Head returns how far the feed has come.
func (f *Feed) Head() Head {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.head
}

// Watchers returns how many there are.
func (f *Feed) Watchers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watchers
}

// Await returns when the feed has come to index, or with the error of ctx.
func (f *Feed) Await(ctx context.Context, index uint64) error {
	for {
		f.mu.Lock()
		if f.err != nil || f.head.Index >= index {
			defer f.mu.Unlock()
			return f.err
		}
		if f.awaiting == nil {
			f.awaiting = make(chan struct{})
		}
		moved := f.awaiting
		f.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *Feed) movedLocked() {
	if f.awaiting != nil {
		close(f.awaiting)
		f.awaiting = nil
	}
}

// turnLoop makes events of entries until the feed is closed or fails.
func (f *Feed) turnLoop() {
	for {
		select {
		case <-f.queue.more:
		case <-f.ctx.Done():
			return
		}
		for f.ctx.Err() == nil {
			turned, err := f.turnNext()
			if err != nil {
				f.queue.close()
				f.end(fmt.Errorf("making events of what was applied: %w", err))
				return
			}
			if !turned {
				break
			}
		}
	}
}

// errVoid says that the state has moved on in a way that the queue does not tell.
var errVoid = errors.New("the queue is void")

// turnNext does the next thing there is to do, and reports false if there is none.
func (f *Feed) turnNext() (turned bool, err error) {
	if f.queue.isVoid() {
		if f.ctx.Err() != nil {
			return false, nil
		}
		return true, f.rebuild()
	}
	e, ok := f.queue.take()
	if !ok {
		return f.queue.isVoid() && f.ctx.Err() == nil, nil
	}
	if e.Index <= f.skip {
		return true, nil
	}
	err = f.turn(e)
	if errors.Is(err, errVoid) {
		f.queue.reset()
		return true, nil
	}
	return true, err
}

// rebuild begins anew with the state as it is.
func (f *Feed) rebuild() error {
	f.queue.restart()
	f.ends = newEnds()
	index, now, err := f.state.Leases(f.ends.add)
	if err != nil {
		return err
	}
	f.skip = index
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watching.wakeAll(f.tail)
	for class := range f.rings {
		f.rings[class].clear(index)
	}
	f.head, f.tail, f.rebuilt = Head{index, now}, endOf(index), endOf(index)
	f.movedLocked()
	return nil
}

// end ends all watching with err.
func (f *Feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.err = err
	}
	f.watching.wakeAll(f.tail)
	f.movedLocked()
}
