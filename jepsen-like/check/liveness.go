package check

import (
	"fmt"
	"slices"
	"time"
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
