package faulty

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

// Clock is a [lease.Clock] that runs faster or slower than another, and jumps. It is
// right until it is told otherwise, and never goes back.
type Clock struct {
	inner lease.Clock

	mu     sync.Mutex
	anchor time.Duration // inner's reading when base was this clock's
	base   time.Duration
	rate   float64 // gained, as a fraction
}

var _ lease.Clock = (*Clock)(nil)

// NewClock returns a clock that follows inner.
func NewClock(inner lease.Clock) *Clock {
	now := inner.Monotonic()
	return &Clock{inner: inner, anchor: now, base: now}
}

// Monotonic returns what the clock reads.
func (c *Clock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked()
}

// readLocked looks at inner with the lock held, so that no later reading is less.
func (c *Clock) readLocked() time.Duration {
	passed := c.inner.Monotonic() - c.anchor
	return c.base + passed + time.Duration(float64(passed)*c.rate)
}

// Wall returns inner's time of day, which nothing depends on.
func (c *Clock) Wall() time.Time { return c.inner.Wall() }

// Set has the clock jump and then run at a rate. What would have it go back is refused.
func (c *Clock) Set(state nemesis.ClockState) error {
	if state.Rate < -1 || state.Jump < 0 {
		return fmt.Errorf("a clock cannot gain %v or jump by %v: it never goes back", state.Rate, state.Jump)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.inner.Monotonic()
	c.base = c.readLocked() + state.Jump
	c.anchor, c.rate = now, state.Rate
	return nil
}
