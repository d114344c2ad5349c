package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// liveness looks how soon nodes served after faults had healed.
func liveness(s *subject, f *finding) {
	var took []time.Duration
	for _, r := range s.run.Recoveries {
		f.Looked++
		if r.Served < 0 {
			f.violation(Violation{From: r.Healed, Until: max(r.Healed, s.run.Info.Length), Text: fmt.Sprintf("node %q did not serve again after the faults had healed at %v", r.Node, brief(r.Healed))})
			continue
		}
		took = append(took, r.Served-r.Healed)
		if !servedBy(s.run.Ops, r) {
			f.violation(Violation{From: r.Healed, Until: r.Served, Text: fmt.Sprintf("node %q is said to have served at %v, and there are no answers of it from %v to then", r.Node, brief(r.Served), brief(r.Healed))})
		}
		if bound := s.options.Recovery; bound > 0 && r.Served-r.Healed > bound {
			f.violation(Violation{From: r.Healed, Until: r.Served, Text: fmt.Sprintf("node %q served only %v after the faults had healed at %v; %v is the bound", r.Node, brief(r.Served-r.Healed), brief(r.Healed), bound)})
		}
	}
	switch {
	case len(took) > 0:
		slices.Sort(took)
		f.note("longest %v, median %v", took[len(took)-1].Round(time.Millisecond), took[len(took)/2].Round(time.Millisecond))
	case f.Looked == 0 && len(s.run.Faults) > 0:
		f.unknown("there were faults, and no recovery was measured")
	}
}

// servedBy reports whether answers show that a node served a read and a write when it is
// said to have. Where nobody has recorded whom he asked, they cannot show it.
func servedBy(ops []history.Op, r history.Recovery) bool {
	var named, read, written bool
	for _, op := range ops {
		named = named || op.Node != ""
		if op.Node == r.Node && answers(op) && op.Call >= r.Healed && op.Return <= r.Served {
			read, written = read || op.Kind == history.Get, written || op.Kind != history.Get
		}
	}
	return !named || read && written
}
