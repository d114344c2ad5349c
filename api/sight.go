package api

import (
	"context"
	"fmt"

	"github.com/leasenode/leasenode/lease"
)

// maxTicks bounds how often one read has the clock put into the log. One is enough
// unless further leases of a page end meanwhile.
const maxTicks = 2

// sight is what a read has found: records of one state, and the instant as of which
// they are described.
type sight struct {
	records []lease.Record
	asOf    lease.Instant
}

// see returns what find finds in the state, as the consistency asks. find's own
// instant is the log's clock.
//
// A linearizable sight is described as of the leader's reading, so that what remains
// is not overstated by the time since the last entry. But a lease whose end only
// that reading has passed, and not the log, is not over yet: the next leader might
// know nothing of it. So the reading is put into the log first, and the state looked
// at again. A sight that still is not settled then is described as of the log, whose
// clock this read has moved: as fresh as any instant since it began.
func (s *leaseServer) see(ctx context.Context, consistency lease.Consistency, find func() (sight, error)) (sight, error) {
	if consistency == lease.Stale {
		return find()
	}
	if err := s.node.Consensus.Confirm(ctx); err != nil {
		return sight{}, err
	}
	for ticks := 0; ; ticks++ {
		seen, err := find()
		if err != nil {
			return sight{}, err
		}
		reading, leads := s.node.Consensus.Reading()
		switch {
		case !leads:
			return sight{}, fmt.Errorf("node %q leads no longer: %w", s.node.ID, lease.ErrUnavailable)
		case seen.settled(reading):
			seen.asOf = max(seen.asOf, reading)
			return seen, nil
		case ticks == maxTicks:
			return seen, nil
		}
		if err := s.node.Consensus.Tick(ctx); err != nil {
			return sight{}, err
		}
	}
}

// settled reports whether the log's clock and reading agree on which leases are over.
func (s sight) settled(reading lease.Instant) bool {
	for _, r := range s.records {
		if r.OverAt(reading) && !r.OverAt(s.asOf) {
			return false
		}
	}
	return true
}

func (s sight) answers() []lease.Answer {
	answers := make([]lease.Answer, len(s.records))
	for i, r := range s.records {
		answers[i] = lease.Answer{Record: r, Now: s.asOf, Remaining: r.RemainingAt(s.asOf)}
	}
	return answers
}
