package raftnet

import (
	"time"

	"github.com/leasenode/leasenode/lease"
)

// reign is one opened term of this node as the leader, and the cluster clock of it:
// the opening entry's now, and the monotonic time that has passed since its answer
// came. Anchored after the answer, the clock can only be late, never ahead of what
// real time allows.
type reign struct {
	term   uint64
	base   lease.Instant
	anchor time.Duration
}

// reading returns the cluster clock when the monotonic clock is at mono.
func (r *reign) reading(mono time.Duration) lease.Instant {
	return r.base.Add(max(0, mono-r.anchor))
}
