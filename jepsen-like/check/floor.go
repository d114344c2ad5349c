package check

import (
	"fmt"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
)

// floor looks at the forgotten floors that were shown, and at those of the last records.
func floor(s *subject, f *finding) {
	lastFloors(s, f)
	for _, key := range s.keys {
		var highest history.Op
		inOrder(s.ops[key], func(op history.Op) {
			if answers(op) && op.Record.ForgottenAtEpoch > highest.Record.ForgottenAtEpoch {
				highest = op
			}
		}, func(op history.Op) {
			if !answers(op) {
				return
			}
			f.Looked++
			shown := op.Record.ForgottenAtEpoch
			switch {
			case shown < highest.Record.ForgottenAtEpoch:
				f.violation(by(fmt.Sprintf("the floor went back from %d to %d: %s; and after it %s", highest.Record.ForgottenAtEpoch, shown, model.Describe(highest), model.Describe(op)), highest, op))
			case shown > op.Record.Epoch:
				f.violation(by(fmt.Sprintf("the floor %d is above the epoch %d: %s", shown, op.Record.Epoch, model.Describe(op)), op))
			case shown > 0 && !asked(s.grants[key].forgets[shown], op):
				f.violation(by(fmt.Sprintf("the floor moved to %d, and nobody with that epoch can have asked for it: %s", shown, model.Describe(op)), op))
			}
		})
	}
}

// lastFloors looks for last records with a lower floor than a watcher was told of an
// earlier epoch, which came before.
func lastFloors(s *subject, f *finding) {
	records := s.recordsOf()
	told := map[string]bool{}
	for _, w := range s.run.Watched {
		if r, known := records[w.Key]; known && !told[w.Key] && w.Epoch < r.Epoch && w.Floor > r.ForgottenAtEpoch {
			told[w.Key] = true // once
			f.violation(heard(w, "the floor went back to %d in the last record, of epoch %d, after %s was told %s, floor %d", r.ForgottenAtEpoch, r.Epoch, w.Watcher, toldText(w), w.Floor))
		}
	}
}

// asked reports whether one of ops was asked before op was answered.
func asked(ops []history.Op, op history.Op) bool {
	for _, o := range ops {
		if o.Call <= op.Return {
			return true
		}
	}
	return false
}
