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
