package check

import (
	"fmt"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// watched holds what watchers were told against itself, against the stored history, the
// answers, and against what other watchers were told.
func watched(s *subject, f *finding) {
	if len(s.run.Watched) == 0 {
		if anyChanged(s.run.Ops) {
			f.unknown("the run has no watchers")
		}
		return
	}
	stretches := gatherStretches(s, f)
	facts := gatherFacts(s)
	logClock(s.run, f)
	for _, one := range stretches {
		f.Looked += len(one.told)
		one.walk(f)
		facts.compare(one, f)
		one.listings(stretches, f)
	}
	for i, one := range stretches {
		for _, other := range stretches[i+1:] {
			if one.watcher != other.watcher {
				agree(one, other, f)
			}
		}
	}
}

// stretch is what one watcher was told from a listing on: all there is after the entry
// at from, up to the one at until.
type stretch struct {
	watcher  string
	renewals bool
	from     uint64
	began    lease.Instant // the clock at from
	until    uint64
	ended    lease.Instant // the clock at until
	listed   []history.Watched
	told     []history.Watched
	// floors are, for each of told, the position that the watcher had before.
	floors []uint64
}

// gatherStretches sorts what was told by watcher and listing. What is missing of it makes
// the check unknown, except what the store has refused.
func gatherStretches(s *subject, f *finding) []*stretch {
	byWatcher := map[string][]history.Watched{}
	var names []string
	for _, w := range s.run.Watched {
		if byWatcher[w.Watcher] == nil {
			names = append(names, w.Watcher)
		}
		byWatcher[w.Watcher] = append(byWatcher[w.Watcher], w)
	}
	var last uint64
	for _, e := range s.run.Stored {
		last = max(last, e.Index)
	}
	var all []*stretch
	for _, name := range names {
		mine, whole := stretchesOf(byWatcher[name], f)
		all = append(all, mine...)
		switch {
		case !whole:
			f.unknown("some of what %s was told is missing", name)
		case len(mine) == 0:
			f.unknown("%s was told nothing", name)
		case mine[len(mine)-1].until < last:
			f.unknown("%s was told what happened up to index %d only, and it went on to %d", name, mine[len(mine)-1].until, last)
		}
	}
	return all
}

// stretchesOf makes stretches of what one watcher was told; whole is false if something
// of it is missing.
func stretchesOf(all []history.Watched, f *finding) (stretches []*stretch, whole bool) {
	var now *stretch
	var reached uint64
	for i, w := range all {
		switch {
		case w.Seq != i+1:
			return stretches, false
		case w.Mark == history.WatchRefused:
			f.violation(Violation{From: w.When, Until: w.When, Text: fmt.Sprintf("%s was refused to go on after %d, where it had been told to be: %s", w.Watcher, w.Index, w.Error)})
		case w.Mark == history.WatchReset:
			now, reached = &stretch{watcher: w.Watcher, renewals: w.Renewals, from: w.Index, began: w.At, until: w.Index, ended: w.At}, w.Index
			stretches = append(stretches, now)
		case now == nil: // nothing was told yet
		case w.Mark == history.WatchListed:
			now.listed = append(now.listed, w)
		case w.Mark == history.WatchTold:
			now.told, now.floors = append(now.told, w), append(now.floors, reached)
		case w.Mark == history.WatchReached:
			now.until, now.ended, reached = w.Index, w.At, w.Index
		}
	}
	return stretches, true
}

// agree holds what two watchers were told of the same entries against each other.
func agree(a, b *stretch, f *finding) {
	from, until := max(a.from, b.from), min(a.until, b.until)
	renewals := a.renewals && b.renewals
	first, second := a.within(from, until, renewals), b.within(from, until, renewals)
	for i := range max(len(first), len(second)) {
		switch {
		case i >= len(first):
			f.violation(heard(second[i], "%s was told %s, and %s nothing more up to index %d", b.watcher, toldText(second[i]), a.watcher, until))
		case i >= len(second):
			f.violation(heard(first[i], "%s was told %s, and %s nothing more up to index %d", a.watcher, toldText(first[i]), b.watcher, until))
		case !sameEvent(first[i], second[i]):
			f.violation(heard(first[i], "%s was told %s where %s was told %s", a.watcher, toldText(first[i]), b.watcher, toldText(second[i])))
		default:
			continue
		}
		return // what follows is shifted
	}
}

// within returns the events of the entries after from and up to until.
func (s *stretch) within(from, until uint64, renewals bool) (events []history.Watched) {
	for _, w := range s.told {
		if w.Index > from && w.Index <= until && (renewals || w.Event != lease.Renewed.String()) {
			events = append(events, w)
		}
	}
	return events
}

func sameEvent(a, b history.Watched) bool {
	return a.Event == b.Event && a.Key == b.Key && a.Owner == b.Owner && a.Epoch == b.Epoch && a.LeaseUntil == b.LeaseUntil &&
		a.Floor == b.Floor && a.Index == b.Index && a.At == b.At
}

// heard is the violation that the event w makes.
func heard(w history.Watched, format string, args ...any) Violation {
	return Violation{Key: w.Key, From: w.When, Until: w.When, Text: fmt.Sprintf(format, args...)}
}

func toldText(w history.Watched) string {
	return fmt.Sprintf("%s %q epoch %d of %q until %d ms (index %d, clock %d ms)", w.Event, w.Key, w.Epoch, w.Owner, w.LeaseUntil.Millis(), w.Index, w.At.Millis())
}
