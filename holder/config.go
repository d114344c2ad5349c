package holder

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/lease"
)

// Config is what a [Holder] is told. [New] checks it.
type Config struct {
	// Owner says who holds, to people and to other holders: 1 to 256 bytes, not blank.
	// Make it unique to this process, for instance with the host's name: a key that
	// another process holds under the same name is refused like any other, but nobody
	// can tell the two apart.
	Owner string
	// TTL is how long a lease lasts without a renewal: whole milliseconds from 100 ms to
	// 24 h. If this process dies, its keys are free after that long; if the store cannot
	// be reached for that long, less the margin, this process stops. A failover of the
	// store takes about 3 s at most: 10 s is a good value, below 5 s a failover fences.
	TTL time.Duration
	// Margin is how long before the lease's end the holder stops by itself: more than 0
	// and less than TTL. 0 stands for a fifth of TTL. It has to cover the time that
	// stopping takes, and a difference of margin / ttl in the rates of two clocks.
	Margin time.Duration
	// Attributes go with each lease for others to read, as where to reach this process:
	// at most 32 pairs and 4 KiB. May be nil.
	Attributes map[string]string
	// Clock is what leases are counted on; nil stands for [NewClock]. Tests in a bubble
	// of testing/synctest want [lease.NewSystemClock], which follows the bubble's time.
	Clock lease.Clock
	// Logger hears of what happens to leases, and, as a warning, when no node has served what
	// the holder asked for about 5 s, rarely again while that goes on, and when one serves
	// again; nil for none.
	Logger hclog.Logger
	// OnChange is called with each change of each lease, one at a time, in order, on a
	// goroutine of the holder's own. Nothing but later calls waits for it. It may use
	// the leases, but must not close the holder. Nil for none.
	OnChange func(Change)
}

// validate returns every fault of c, joined, or nil. What is no request that the store
// would take is an [*lease.InvalidError].
func (c Config) validate() error {
	request := lease.AcquireRequest{Key: "any", Owner: c.Owner, TTL: c.TTL, Attributes: c.Attributes}
	faults := []error{request.Mutation().Validate()}
	if c.Margin < 0 || c.Margin >= c.TTL {
		faults = append(faults, &lease.InvalidError{
			Field: "margin", Problem: fmt.Sprintf("%v leaves no usable window", c.Margin),
			Limit: fmt.Sprintf("0 or more and less than the ttl of %v", c.TTL),
		})
	}
	return errors.Join(faults...)
}

// withDefaults returns c with what was left out filled in, and nothing shared.
func (c Config) withDefaults() Config {
	if c.Margin == 0 {
		c.Margin = c.TTL / 5
	}
	c.Attributes = maps.Clone(c.Attributes)
	if c.Clock == nil {
		c.Clock = NewClock()
	}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	return c
}
