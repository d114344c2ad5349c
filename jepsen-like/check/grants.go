package check

import (
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// answers reports whether op has an answer or a refusal of the store that is as fresh
// as linearizable ones are.
func answers(op history.Op) bool {
	return op.Kind != history.GetStale && tells(op)
}

// tells reports whether op tells a record.
func tells(op history.Op) bool {
	return op.Outcome == history.OK || op.Outcome == history.Held || op.Outcome == history.Lost
}

// changed reports whether op was answered that it changed something.
func changed(op history.Op) bool {
	return op.Outcome == history.OK && op.Changed && op.Kind != history.Get && op.Kind != history.GetStale
}

// perhaps reports whether op may have changed something that no answer tells of.
func perhaps(op history.Op) bool {
	switch {
	case op.Kind == history.Get || op.Kind == history.GetStale:
		return false
	case op.Outcome == history.Unavailable || op.Outcome == history.Invalid || op.Outcome == history.Exhausted:
		return false
	default:
		return op.Outcome == history.Unknown || op.Tries != 1
	}
}

// grants is what is known of the grants of a key.
type grants struct {
	// unrecorded says that there are no operations to hold anything against.
	unrecorded bool
	latest     uint64
	owner      map[uint64]string // that was shown
	// granted are the acquires that were answered with a new grant, by epoch; the first.
	granted map[uint64]history.Op
	// open are the acquires that may have got a grant that no answer tells of.
	open []history.Op
	// releases, forgets and renewals are those that may have had an effect on an epoch.
	releases, forgets, renewals map[uint64][]history.Op
}

func gatherGrants(s *subject, key string) *grants {
	g := &grants{
		owner: map[uint64]string{}, granted: map[uint64]history.Op{},
		unrecorded: len(s.ops[key]) == 0,
		releases:   map[uint64][]history.Op{}, forgets: map[uint64][]history.Op{}, renewals: map[uint64][]history.Op{},
	}
	for _, op := range s.ops[key] {
		g.take(op)
	}
	for _, e := range s.run.Stored {
		if e.Key == key {
			g.show(e.Epoch, e.Owner)
		}
	}
	for _, r := range s.run.Records {
		if r.Key == key {
			g.show(r.Epoch, r.Owner)
		}
	}
	return g
}

func (g *grants) take(op history.Op) {
	if answers(op) {
		g.show(op.Record.Epoch, op.Record.Owner)
	}
	if !changed(op) && !perhaps(op) {
		return
	}
	switch op.Kind {
	case history.Acquire:
		if _, known := g.granted[op.Record.Epoch]; changed(op) && !known {
			g.granted[op.Record.Epoch] = op
		}
		if perhaps(op) {
			g.open = append(g.open, op)
		}
	case history.Renew:
		g.renewals[op.Epoch] = append(g.renewals[op.Epoch], op)
	case history.Release:
		g.releases[op.Epoch] = append(g.releases[op.Epoch], op)
	case history.Forget:
		g.forgets[op.Epoch] = append(g.forgets[op.Epoch], op)
	}
}

// show notes that epoch was shown to be owner's, the first time that it is.
func (g *grants) show(epoch uint64, owner string) {
	if epoch == 0 {
		return
	}
	g.latest = max(g.latest, epoch)
	if _, known := g.owner[epoch]; !known {
		g.owner[epoch] = owner
	}
}

// possible reports whether epoch can have been granted: an answer says so, or an acquire
// that was not answered may have got it, by owner if that is not empty. What the key's
// records show is all there is to go by if its operations are not recorded.
func (g *grants) possible(epoch uint64, owner string) bool {
	if g.unrecorded {
		return g.latest == 0 || epoch <= g.latest // as far as the store tells
	}
	if op, known := g.granted[epoch]; known {
		return owner == "" || op.Record.Owner == owner
	}
	for _, op := range g.open {
		if owner == "" || op.Owner == owner {
			return true
		}
	}
	return false
}

// recordsOf are the last records, by key.
func (s *subject) recordsOf() map[string]lease.Record {
	records := map[string]lease.Record{}
	for _, r := range s.run.Records {
		records[r.Key] = r
	}
	return records
}
