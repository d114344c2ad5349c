package check

import (
	"fmt"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
)

// fresh holds each linearizable read against what was acknowledged before it began.
func fresh(s *subject, f *finding) {
	for _, key := range s.keys {
		b := before{}
		inOrder(s.ops[key], b.take, func(op history.Op) {
			if op.Kind != history.Get || op.Outcome != history.OK {
				return
			}
			f.Looked++
			if what, change := b.missedBy(op, s.grants[key]); what != "" {
				f.violation(by(fmt.Sprintf("a read misses %s that was acknowledged %v before it began: %s; read: %s",
					what, brief(op.Call-change.Return), model.Describe(change), model.Describe(op)), change, op))
			}
		})
	}
}

// before is what was acknowledged so far: the changes with the highest epoch, floor,
// and, of the highest epoch, end; and its release.
type before struct{ grant, floor, end, release history.Op }

func (b *before) take(op history.Op) {
	if !changed(op) {
		return
	}
	r := op.Record
	if r.Epoch > b.grant.Record.Epoch {
		b.grant, b.end, b.release = op, op, history.Op{}
	}
	if r.ForgottenAtEpoch > b.floor.Record.ForgottenAtEpoch {
		b.floor = op
	}
	if r.Epoch < b.grant.Record.Epoch {
		return
	}
	if op.Kind == history.Release {
		b.release = op
	} else if r.LeaseUntil > b.end.Record.LeaseUntil {
		b.end = op
	}
}

// missedBy says which acknowledged change read does not show; "" if it shows all.
func (b *before) missedBy(read history.Op, g *grants) (what string, change history.Op) {
	r := read.Record
	switch {
	case r.Epoch < b.grant.Record.Epoch:
		return "a grant", b.grant
	case r.ForgottenAtEpoch < b.floor.Record.ForgottenAtEpoch:
		return "a floor", b.floor
	case r.Epoch != b.grant.Record.Epoch:
		return "", change
	case b.release.ID != 0 && read.Remaining > 0:
		return "a release", b.release
	case !asked(g.releases[r.Epoch], read) && r.LeaseUntil < b.end.Record.LeaseUntil:
		return "a renewal", b.end
	default:
		return "", change
	}
}

// staleReads looks whether what stale reads show was ever there.
func staleReads(s *subject, f *finding) {
	for _, key := range s.keys {
		g := s.grants[key]
		for _, op := range s.ops[key] {
			if op.Kind != history.GetStale || op.Outcome != history.OK {
				continue
			}
			f.Looked++
			if problem := neverWas(op, g, s.ops[key]); problem != "" {
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
