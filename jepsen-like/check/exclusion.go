package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// exclusion looks for beliefs of different grants, or of different holders, that
// overlap. Beliefs that touch do not: one ends at the moment at which the other begins.
func exclusion(s *subject, f *finding) {
	byKey := map[string][]history.Belief{}
	for _, b := range s.run.Beliefs {
		if b.Until > b.From {
			byKey[b.Key] = append(byKey[b.Key], b)
		}
		f.Looked++
	}
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		beliefs := byKey[key]
		slices.SortStableFunc(beliefs, func(a, b history.Belief) int { return cmp.Compare(a.From, b.From) })
		overlaps(beliefs, f)
	}
}

// overlaps goes through the beliefs of a key by their beginnings, and keeps of each
// grant the one that lasts longest.
func overlaps(beliefs []history.Belief, f *finding) {
	type claim struct {
		holder string
		epoch  uint64
	}
	longest := map[claim]history.Belief{}
	told := map[[2]claim]bool{}
	for _, b := range beliefs {
		mine := claim{b.Holder, b.Epoch}
		for other, before := range longest {
			if before.Until <= b.From {
				delete(longest, other) // no later belief begins earlier
				continue
			}
			if other == mine || told[[2]claim{other, mine}] {
				continue
			}
			told[[2]claim{other, mine}], told[[2]claim{mine, other}] = true, true
			until := min(before.Until, b.Until)
			f.violation(Violation{
				Key: b.Key, From: b.From, Until: until,
				Text: fmt.Sprintf("two hold for %v: %q with epoch %d (certain from %v to %v) and %q with epoch %d (from %v to %v)",
					brief(until-b.From), before.Holder, before.Epoch, brief(before.From), brief(before.Until), b.Holder, b.Epoch, brief(b.From), brief(b.Until)),
			})
		}
		if before, known := longest[mine]; !known || before.Until < b.Until {
			longest[mine] = b
		}
	}
}
