package sim

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// clock is a machine's clock that runs at a rate of its own. Its monotonic reading
// never goes back.
type clock struct {
	mu   sync.Mutex
	rate float64       // 0.05 gains 50 ms a second
	at   time.Time     // of the last change of the rate, in real time
	read time.Duration // what it read then
	wall time.Duration // what it is off by, for people
	// paused has a func() or nothing; it is called whenever the wall clock is read, and may keep the reader: a
	// goroutine can be kept from running between any two steps.
	paused atomic.Value
}

var _ lease.Clock = (*clock)(nil)

func newClock(rate float64) *clock { return &clock{rate: rate, at: time.Now()} }

func (c *clock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nowLocked()
}

func (c *clock) nowLocked() time.Duration {
	real := time.Since(c.at)
	return c.read + real + time.Duration(float64(real)*c.rate)
}

// Wall is as wrong as a wall clock may be: it serves people.
func (c *clock) Wall() time.Time {
	if paused, ok := c.paused.Load().(func()); ok {
		paused()
	}
	return time.Now().Add(c.wall)
}

// set changes the rate from now on, and jumps ahead once.
func (c *clock) set(rate float64, jump time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read, c.at = c.nowLocked()+jump, time.Now()
	c.rate = rate
}
