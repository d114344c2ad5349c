package leasetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/lease"
)

var (
	_ lease.Clock = (*ManualClock)(nil)
	_ lease.Clock = (*TrippingClock)(nil)
)

// ManualClock is a [lease.Clock] that stands still until it is told to move. It is
// safe for concurrent use. Make one with [NewManualClock].
type ManualClock struct {
	mu        sync.Mutex
	monotonic time.Duration
	wall      time.Time
	moves     chan struct{} // closed at the next move; nil if nobody waits for it
}

// NewManualClock returns a clock with a monotonic reading of 0 and the given time
// of day.
func NewManualClock(wall time.Time) *ManualClock { return &ManualClock{wall: wall} }

// Monotonic returns the sum of what the clock was advanced by.
func (c *ManualClock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.monotonic
}

// Wall returns the time of day: what was set last, and what the clock was advanced
// by since.
func (c *ManualClock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall
}

// Advance moves the clock, its time of day included, by d. It panics if d is
// negative: a monotonic clock never goes back.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.advanceLocked(d)
}

func (c *ManualClock) advanceLocked(d time.Duration) {
	if d < 0 {
		panic(fmt.Sprintf("leasetest: a monotonic clock cannot be advanced by %v", d))
	}
	c.monotonic += d
	c.wall = c.wall.Add(d)
	if c.moves != nil {
		close(c.moves)
		c.moves = nil
	}
}

// moved returns a channel that is closed when the clock is advanced the next time.
func (c *ManualClock) moved() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moves == nil {
		c.moves = make(chan struct{})
	}
	return c.moves
}

// movedOf returns that channel of a clock that has one, or nil.
func movedOf(clock lease.Clock) <-chan struct{} {
	if c, ok := clock.(interface{ moved() <-chan struct{} }); ok {
		return c.moved()
	}
	return nil
}

// SetWall sets the time of day, forward or back, as an administrator or a time
// server may. The monotonic reading stays.
func (c *ManualClock) SetWall(wall time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = wall
}

// TrippingClock is a [ManualClock] that can also jump by itself between two
// readings: it makes time pass in the middle of a call, where no test could get
// in. It is safe for concurrent use. Make one with [NewTrippingClock].
type TrippingClock struct {
	ManualClock
	armed bool // under mu, as the two below
	reads int
	jump  time.Duration
}

// NewTrippingClock returns a clock that is not armed, with a monotonic reading of
// 0 and the given time of day.
func NewTrippingClock(wall time.Time) *TrippingClock {
	return &TrippingClock{ManualClock: ManualClock{wall: wall}}
}

// Arm lets reads more monotonic readings pass and has the one after them advance
// the clock by jump before it is taken. That happens once; arming again replaces
// what was armed. It panics if jump is negative.
func (c *TrippingClock) Arm(reads int, jump time.Duration) {
	if jump < 0 {
		panic(fmt.Sprintf("leasetest: a monotonic clock cannot jump by %v", jump))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.reads, c.jump = true, reads, jump
}

// Monotonic returns the reading, after the jump if this is the one to jump at.
// Readings of the time of day do not count.
func (c *TrippingClock) Monotonic() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.armed && c.reads <= 0:
		c.armed = false
		c.advanceLocked(c.jump)
	case c.armed:
		c.reads--
	}
	return c.monotonic
}
