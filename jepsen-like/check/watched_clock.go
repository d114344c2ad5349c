package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// dated is an index of the log with the cluster clock there, and who says so.
type dated struct {
	index uint64
	at    lease.Instant
	when  time.Duration
	by    string
}

// logClock looks whether the clock goes on with the log: each index has one instant,
// whoever tells of it, and later ones have none that is earlier.
func logClock(run history.Run, f *finding) {
	var all []dated
	for _, w := range run.Watched {
		if w.Mark == history.WatchTold || w.Mark == history.WatchReached || w.Mark == history.WatchReset && w.At > 0 {
			all = append(all, dated{w.Index, w.At, w.When, w.Watcher})
		}
	}
	for _, e := range run.Stored {
		all = append(all, dated{e.Index, e.At, run.Info.Length, "the stored history"})
	}
	slices.SortStableFunc(all, func(a, b dated) int { return cmp.Compare(a.index, b.index) })
	for i, d := range all[min(1, len(all)):] {
		before := all[i]
		if d.at < before.at || d.index == before.index && d.at != before.at {
			from, until := min(before.when, d.when), max(before.when, d.when)
			f.violation(Violation{From: from, Until: until, Text: fmt.Sprintf("the clock was at %d ms at index %d, says %s, and at %d ms at index %d, says %s",
				before.at.Millis(), before.index, before.by, d.at.Millis(), d.index, d.by)})
		}
	}
}
