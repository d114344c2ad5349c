package faulty

import (
	"fmt"
	"strings"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// Mode is a way to break a promise.
type Mode struct {
	Name string
	// Text says what a broken node does, in half a sentence.
	Text string
	// apply puts the broken parts in the place of right ones.
	apply func(*node.Parts)
}

// The names of the modes.
const (
	StaleReads      = "stale-reads"
	ConstantEpoch   = "constant-epoch"
	RenewsForAnyone = "renews-for-anyone"
	FastClock       = "fast-clock"
	DropsEntry      = "drops-entry"
	DropsUnnoticed  = "drops-entry-unnoticed"
	EarlyAck        = "early-ack"
	ForgetsRequests = "forgets-requests"
	FloorBack       = "floor-back"
	DoubleGrant     = "double-grant"
	LosesEvents     = "loses-events"
	RepeatsEvents   = "repeats-events"
)

// fastRate is how much a fast clock gains: far more than the margin of any holder
// allows for.
const fastRate = 0.5

// Modes returns all modes.
func Modes() []Mode {
	return []Mode{
		{StaleReads, "answers linearizable reads from what it has, leader or not", wrap(newStaleReads)},
		{ConstantEpoch, "says epoch 1 of every grant of a key", wrap(newConstantEpoch)},
		{RenewsForAnyone, "renews a lease for whoever asks, with any epoch", wrap(newRenewsForAnyone)},
		{FastClock, "reads a clock that gains half a second in each", func(p *node.Parts) {
			clock := NewClock(p.Clock)
			_ = clock.Set(nemesis.ClockState{Rate: fastRate}) // a gain is never refused
			p.Clock = clock
		}},
		{DropsEntry, "skips an entry of the log now and then, while it follows", dropEntries},
		{DropsUnnoticed, "does that, and tells nobody the digest of its state", func(p *node.Parts) {
			dropEntries(p)
			wrap(newBlind)(p)
		}},
		{EarlyAck, "answers an acquire before a majority has it", wrap(newEarlyAck)},
		{ForgetsRequests, "does a retried acquire once more, as a new grant", wrap(newForgetsRequests)},
		{FloorBack, "says a forgotten floor of 0 once a later grant was made", wrap(newFloorBack)},
		{DoubleGrant, "grants a key that is held, now and then", wrap(newDoubleGrant)},
		{LosesEvents, "leaves out a change now and then in what it tells watchers", wrap(newEvents(0))},
		{RepeatsEvents, "tells watchers a change twice now and then", wrap(newEvents(2))},
	}
}

// Break puts the parts of a mode in the place of right ones.
func Break(parts *node.Parts, name string) error {
	var names []string
	for _, mode := range Modes() {
		if mode.Name == name {
			mode.apply(parts)
			return nil
		}
		names = append(names, mode.Name)
	}
	return fmt.Errorf("a node cannot be broken in the way %q, only by %s", name, strings.Join(names, ", "))
}

// honest are the right parts that a broken one stands before.
type honest struct {
	api.Consensus
	state api.State
}

func wrap(broken func(honest) (api.Consensus, api.State)) func(*node.Parts) {
	return func(p *node.Parts) {
		p.Wrap = func(c api.Consensus, s api.State) (api.Consensus, api.State) { return broken(honest{c, s}) }
	}
}
