package holder

import (
	"time"

	"github.com/leasenode/leasenode/lease"
)

// NewClock returns the clock that a holder counts its leases on. It never goes back,
// no setting of the wall clock moves it, and it goes on while the machine sleeps:
//
//   - Linux: CLOCK_BOOTTIME.
//   - macOS: CLOCK_MONOTONIC, which counts sleep there.
//   - Windows: the time since boot, in steps of at most 16 ms.
//   - elsewhere: Go's monotonic clock. Whether that counts sleep depends on the system;
//     if it does not, only the epoch protects after one.
//
// No clock sees that a hypervisor paused its machine, or that the machine was restored
// from a snapshot.
func NewClock() lease.Clock {
	if _, ok := sinceBoot(); ok {
		return bootClock{}
	}
	return lease.NewSystemClock()
}

type bootClock struct{}

func (bootClock) Monotonic() time.Duration {
	now, ok := sinceBoot()
	if !ok { // it has worked before; whoever took it away, no lease must seem held
		return never
	}
	return now
}

func (bootClock) Wall() time.Time { return time.Now() }
