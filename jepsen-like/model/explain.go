package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// withoutLookahead returns rules that go on until a step is wrong in itself. Lookahead
// stops as soon as the rest must fail, which is early; people want to see what fails.
func (r *rules) withoutLookahead() *rules {
	plain := *r
	plain.lookahead = false
	return &plain
}

// explain finds the longest order that is right, as far as timeout allows, and what has
// no place after it.
func (r *Result) explain(rules *rules, operations []porcupine.Operation, timeout time.Duration) {
	r.model = rules.porcupine()
	_, r.info = porcupine.CheckOperationsVerbose(r.model, operations, timeout)
	var longest []porcupine.Operation
	for _, partition := range r.info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	placed := map[*input]bool{}
	s := initial()
	for _, op := range longest {
		in := op.Input.(*input)
		placed[in] = true
		s, _ = rules.step(s, in)
	}
	r.After = s.String()
	for _, op := range operations {
		if in := op.Input.(*input); in.part == answered && !placed[in] {
			r.Stuck = append(r.Stuck, in.op)
		}
	}
	slices.SortStableFunc(r.Stuck, func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
}
