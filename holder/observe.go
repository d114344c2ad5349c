package holder

import (
	"sync"
	"sync/atomic"

	"github.com/leasenode/leasenode/lease"
)

// State is what a lease is to its holder.
type State string

// The states. A lease begins as held; from fenced it may come back to held, under the
// same epoch; lost and released are final.
const (
	StateHeld     State = "held"
	StateFenced   State = "fenced"   // at the local deadline: see [lease.ReasonExpiredLocally]
	StateLost     State = "lost"     // see [lease.ReasonLost]
	StateReleased State = "released" // see [lease.ReasonReleased]
)

// Change is one change of one lease.
type Change struct {
	Lease *Lease
	State State
	// Fence says why the lease is not held; nil if it is.
	Fence *lease.FencedError
}

func stateOf(fence *lease.FencedError) State {
	switch {
	case fence == nil:
		return StateHeld
	case fence.Reason == lease.ReasonLost:
		return StateLost
	case fence.Reason == lease.ReasonReleased:
		return StateReleased
	default:
		return StateFenced
	}
}

// Stats counts what a holder has done since it was made.
type Stats struct {
	// Leases is how many leases there are now that are neither lost nor released.
	Leases int
	// Acquired counts grants; Fenced, Resumed, Lost and Released count changes. A lease
	// that is fenced and then lost counts in both.
	Acquired, Fenced, Resumed, Lost, Released uint64
	// Renewed counts renewals that were answered. Failed counts those that were not and will
	// be tried again, and tries to acquire that nobody served.
	Renewed, Failed uint64
	// Requests counts the calls of the store. One call can renew up to 1,000 leases.
	Requests uint64
}

type counts struct {
	acquired, fenced, resumed, lost, released, renewed, failed, requests atomic.Uint64
}

// Stats returns the counts as they are now.
func (h *Holder) Stats() Stats {
	h.mu.Lock()
	leases := len(h.leases)
	h.mu.Unlock()
	c := &h.counts
	return Stats{
		Leases: leases, Acquired: c.acquired.Load(), Fenced: c.fenced.Load(), Resumed: c.resumed.Load(),
		Lost: c.lost.Load(), Released: c.released.Load(), Renewed: c.renewed.Load(), Failed: c.failed.Load(), Requests: c.requests.Load(),
	}
}

// changes hands changes to a callback, in order, off the goroutines that make them.
type changes struct {
	deliver func(Change)
	joined  sync.WaitGroup

	mu     sync.Mutex
	queue  []Change // few: a lease changes a handful of times in its life
	closed bool
	more   chan struct{} // has a token if there may be something to look at
}

// startChanges returns changes that go to deliver, which may be nil.
func startChanges(deliver func(Change)) *changes {
	c := &changes{deliver: deliver, more: make(chan struct{}, 1)}
	if deliver != nil {
		c.joined.Go(c.deliverLoop)
	}
	return c
}

func (c *changes) add(change Change) {
	if c.deliver == nil {
		return
	}
	c.mu.Lock()
	c.queue = append(c.queue, change)
	c.mu.Unlock()
	c.poke()
}

func (c *changes) poke() {
	select {
	case c.more <- struct{}{}:
	default:
	}
}

func (c *changes) deliverLoop() {
	for range c.more {
		c.mu.Lock()
		batch, closed := c.queue, c.closed
		c.queue = nil
		c.mu.Unlock()
		for _, change := range batch {
			c.deliver(change)
		}
		if closed {
			return
		}
	}
}

// close delivers what is waiting, and returns after the last call has.
func (c *changes) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.poke()
	c.joined.Wait()
}
