package lease

import "time"

// Clock is where time comes from. Implementations are safe for concurrent use.
type Clock interface {
	// Monotonic returns the time since some fixed origin of this process. It never
	// goes back. Only differences between two readings of one clock mean anything.
	Monotonic() time.Duration
	// Wall returns the time of day: for people to read, never for a decision.
	Wall() time.Time
}

// NewSystemClock returns the clock of this machine. Its monotonic reading is Go's,
// which stands still while the machine is suspended: right for a leader, whose
// leases then last longer, and wrong for a holder, which has to count that time.
func NewSystemClock() Clock { return systemClock{origin: time.Now()} }

type systemClock struct{ origin time.Time }

func (c systemClock) Monotonic() time.Duration { return time.Since(c.origin) }
func (c systemClock) Wall() time.Time          { return time.Now() }
