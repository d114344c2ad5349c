package check

import (
	"fmt"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
)

// floor looks at the forgotten floors that were shown.
func floor(s *subject, f *finding) {
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

// asked reports whether one of ops was asked before op was answered.
func asked(ops []history.Op, op history.Op) bool {
	for _, o := range ops {
		if o.Call <= op.Return {
			return true
		}
	}
	return false
}
