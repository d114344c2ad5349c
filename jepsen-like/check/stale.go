package check

import (
	"fmt"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
	"github.com/leasenode/leasenode/lease"
)

// staleReads looks whether what stale reads show was ever there.
func staleReads(s *subject, f *finding) {
	states := statesTold(s)
	for _, key := range s.keys {
		g := s.grants[key]
		for _, op := range s.ops[key] {
			if op.Kind != history.GetStale || op.Outcome != history.OK {
				continue
			}
			f.Looked++
			problem := neverWas(op, g, s.ops[key])
			if problem == "" {
				problem = wrongClock(op)
			}
			if problem == "" && states.lacks(op.Record) {
				problem = "a state that no watcher was told, though one was told all of that grant"
			}
			if problem != "" {
				f.violation(by(fmt.Sprintf("a stale read shows %s: %s", problem, model.Describe(op)), op))
			}
		}
	}
}

// neverWas says what in the record that op shows was never there; "" if all may have.
func neverWas(op history.Op, g *grants, ops []history.Op) string {
	r := op.Record
	if r.Epoch == 0 {
		return ""
	}
	if grant, known := g.granted[r.Epoch]; known && grant.Call > op.Return {
		return "an epoch that was granted later"
	}
	owner, shown := g.owner[r.Epoch]
	switch {
	case shown && owner != r.Owner:
		return fmt.Sprintf("epoch %d with an owner who is not %q", r.Epoch, owner)
	case !g.possible(r.Epoch, r.Owner):
		return "an epoch that its owner was not granted"
	case r.ForgottenAtEpoch > r.Epoch || r.ForgottenAtEpoch > 0 && !asked(g.forgets[r.ForgottenAtEpoch], op):
		return "a floor that nobody set"
	case !endedSo(op, g, ops):
		return "an end of the lease that nobody made"
	default:
		return ""
	}
}

// endedSo reports whether the lease can have had the end that read shows.
func endedSo(read history.Op, g *grants, ops []history.Op) bool {
	epoch := read.Record.Epoch
	if _, known := g.granted[epoch]; !known {
		return true // its end was never told
	}
	for _, changes := range [][]history.Op{g.renewals[epoch], g.releases[epoch]} {
		for _, op := range changes {
			if perhaps(op) {
				return true
			}
		}
	}
	for _, op := range ops {
		if answers(op) && op.Record.Epoch == epoch && op.Record.LeaseUntil.Millis() == read.Record.LeaseUntil.Millis() && op.Call <= read.Return {
			return true
		}
	}
	return false
}

// wrongClock says what is wrong with the clock that a stale read tells; "" if nothing is.
// It can be behind all others, and ahead of them, where a leader's clock was lost with it,
// but has to be what the read itself shows.
func wrongClock(read history.Op) string {
	if read.Now == 0 {
		return "" // nothing is known of the clock there
	}
	left, remaining := read.Record.LeaseUntil.Millis()-read.Now.Millis(), (read.Remaining + rounding - 1).Milliseconds()
	if remaining == 0 && left > 0 || remaining > 0 && remaining != left && remaining != left+1 {
		return fmt.Sprintf("%d ms left where its clock makes it %d", remaining, left)
	}
	return ""
}

// grantStates are the states of grants of which some watcher was told all.
type grantStates map[grantOf][]lease.Record

func statesTold(s *subject) grantStates {
	all := grantStates{}
	whole := leasesTold(s, gatherPace(s.run))
	for _, w := range s.run.Watched {
		g := grantOf{w.Key, w.Epoch}
		if l := whole[g]; w.Mark == history.WatchTold && l != nil && l.whole {
			all[g] = append(all[g], recordOf(w))
		}
	}
	return all
}

// lacks reports whether r is none of the states of its grant, if those are known.
func (g grantStates) lacks(r lease.Record) bool {
	states := g[grantOf{r.Key, r.Epoch}]
	r.LeaseUntil = lease.InstantOfMillis(r.LeaseUntil.Millis())
	return len(states) > 0 && !slices.ContainsFunc(states, func(told lease.Record) bool { return sameRecord(told, r) })
}
