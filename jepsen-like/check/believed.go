package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// believed looks for holders that were certain although the store had ended the lease by
// then, or longer than it can have told them to be. That nobody else held is no excuse:
// somebody could have.
//
// What holders were answered is not recorded. What watchers were told is: when a grant
// had ended at the latest, and up to which instant of the cluster clock it was extended.
// The call that was answered last is not known, so ttl after it is no bound: an acquire
// that is sent again can be answered late, with what remains on a clock that has lost
// time since. But whatever the answer was, it told what remained on that clock.
func believed(s *subject, f *finding) {
	told := gatherPace(s.run)
	ofGrants := leasesTold(s, told)
	bounded := 0
	for _, b := range s.run.Beliefs {
		f.Looked++
		l := ofGrants[grantOf{b.Key, b.Epoch}]
		if l == nil {
			continue
		}
		if l.over > 0 && b.Until > l.over+rounding {
			f.violation(Violation{Key: b.Key, From: l.over, Until: b.Until, Text: fmt.Sprintf(
				"%q was certain until %v that it held epoch %d, and a watcher was told %v before that it had ended", b.Holder, brief(b.Until), b.Epoch, brief(b.Until-l.over))})
			continue
		}
		if !l.whole {
			continue
		}
		bounded++
		if bound := told.latestEnd(l.last, l.until); b.Until > bound+rounding {
			f.violation(Violation{Key: b.Key, From: bound, Until: b.Until, Text: fmt.Sprintf(
				"%q was certain until %v that it held epoch %d, which is %v longer than any answer can have told it: the lease ended at clock %d ms", b.Holder, brief(b.Until), b.Epoch, brief(b.Until-bound), l.until.Millis())})
		}
	}
	f.note("%d held against all of their lease", bounded)
}

type grantOf struct {
	key   string
	epoch uint64
}

// leaseTold is what watchers were told of a grant.
type leaseTold struct {
	// over is the first moment at which a watcher knew that it had ended; 0 if none did.
	over time.Duration
	// last is the instant of its last grant or renewal, until the end that this gave it.
	last, until lease.Instant
	// whole says that some watcher was told all of it, up to its end or that of the run.
	whole bool
}

func leasesTold(s *subject, p pace) map[grantOf]*leaseTold {
	all := map[grantOf]*leaseTold{}
	of := func(w history.Watched) *leaseTold {
		g := grantOf{w.Key, w.Epoch}
		if all[g] == nil {
			all[g] = &leaseTold{}
		}
		return all[g]
	}
	ends := func(l *leaseTold, w history.Watched) {
		if l.over == 0 || w.When < l.over {
			l.over = w.When
		}
	}
	for _, stretch := range gatherStretches(s, &finding{}) {
		begun := map[grantOf]bool{} // of which this watcher has been told all so far
		for _, w := range stretch.told {
			l := of(w)
			switch w.Event {
			case lease.Acquired.String():
				begun[grantOf{w.Key, w.Epoch}] = true
				if before := all[grantOf{w.Key, w.Epoch - 1}]; before != nil {
					ends(before, w)
				}
			case lease.Released.String(), lease.Expired.String():
				ends(l, w)
				l.whole = l.whole || stretch.renewals && begun[grantOf{w.Key, w.Epoch}]
				continue
			case lease.Forgotten.String():
				continue // it has the end that there was
			}
			if w.LeaseUntil > l.until {
				l.last, l.until = w.At, w.LeaseUntil
			}
		}
		for g := range begun {
			all[g].whole = all[g].whole || stretch.renewals && stretch.until >= p.lastIndex
		}
	}
	return all
}

// pace is how the cluster clock went, as far as was told.
type pace struct {
	told      []toldAt // by moments
	ended     time.Duration
	lastIndex uint64 // of the stored history
}

// toldAt is an instant that the log had reached at a moment.
type toldAt struct {
	instant lease.Instant
	by      time.Duration
}

func gatherPace(run history.Run) pace {
	p := pace{ended: run.Info.Length}
	for _, t := range toldOf(run.Ops) {
		if t.Kind != history.Get { // which tells a clock that may be lost
			p.told = append(p.told, toldAt{t.least, t.Return})
		}
		p.ended = max(p.ended, t.Return)
	}
	for _, w := range run.Watched {
		if w.Mark == history.WatchTold {
			p.told = append(p.told, toldAt{w.At, w.When})
		}
		p.ended = max(p.ended, w.When)
	}
	for _, e := range run.Stored {
		p.lastIndex = max(p.lastIndex, e.Index)
	}
	slices.SortFunc(p.told, func(a, b toldAt) int { return cmp.Compare(a.by, b.by) })
	return p
}

// latestEnd returns the moment at which the last certainty can have ended that an answer
// gave at or after the instant from, if the lease ended at until: when the clock was told
// to be there, or else, for an answer at any moment, what remained on the clock then, which
// was not before what was told by then.
func (p pace) latestEnd(from, until lease.Instant) time.Duration {
	var latest time.Duration
	now := from
	for _, t := range p.told {
		latest = max(latest, t.by+until.Sub(now))
		if t.instant >= until {
			return t.by
		}
		now = max(now, t.instant)
	}
	return max(latest, p.ended+until.Sub(now))
}
