package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// resource looks at what the fenced resources took.
func resource(s *subject, f *finding) {
	byKey := map[string][]history.Write{}
	for _, w := range s.run.Writes {
		byKey[w.Key] = append(byKey[w.Key], w)
		f.Looked++
	}
	accepted := 0
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		writes := byKey[key]
		slices.SortStableFunc(writes, func(a, b history.Write) int { return cmp.Compare(a.Seq, b.Seq) })
		var highest history.Write
		for _, w := range writes {
			if !s.grants[key].possible(w.Token, "") {
				f.violation(Violation{Key: key, From: w.At, Until: w.At, Text: fmt.Sprintf("%q wrote with token %d, which was not granted (write %d)", w.Holder, w.Token, w.Seq)})
			}
			if !w.Accepted {
				continue
			}
			accepted++
			if w.Token < highest.Token {
				f.violation(Violation{
					Key: key, From: min(highest.At, w.At), Until: max(highest.At, w.At),
					Text: fmt.Sprintf("the resource took token %d of %q (write %d) after token %d of %q (write %d)", w.Token, w.Holder, w.Seq, highest.Token, highest.Holder, highest.Seq),
				})
				continue
			}
			highest = w
		}
	}
	f.note("%d taken, %d refused", accepted, f.Looked-accepted)
}
