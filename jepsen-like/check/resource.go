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
		numbering(key, writes, f)
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

// numbering holds the writes of a key, in the order of their numbers, against what their
// resource does: it numbers them 1, 2, 3 and on, and refuses none but for a newer one.
// Of one that is not told some holder may not have told, who was killed: that is unknown.
func numbering(key string, writes []history.Write, f *finding) {
	last := map[string]history.Write{} // of each holder
	var highest uint64
	missing := 0
	for i, w := range writes {
		wrong := func(format string, args ...any) {
			f.violation(Violation{Key: key, From: w.At, Until: w.At, Text: fmt.Sprintf("write %d, of %q with token %d, ", w.Seq, w.Holder, w.Token) + fmt.Sprintf(format, args...)})
		}
		before := 0
		if i > 0 {
			before = writes[i-1].Seq
		}
		if w.Seq < 1 || w.Seq == before {
			wrong("has the number of another, or none")
		}
		missing += max(0, w.Seq-before-1)
		if own := last[w.Holder]; w.At < own.At || w.At < 0 {
			wrong("was decided before the one before it, write %d", own.Seq)
		}
		if !w.Accepted && missing == 0 && w.Token >= highest {
			wrong("was refused, and none with a higher token came before it")
		}
		last[w.Holder], highest = w, max(highest, w.Token)
	}
	if missing > 0 {
		f.unknown("%d writes to the resource of %q are not told", missing, key)
	}
}
