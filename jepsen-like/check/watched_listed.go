package check

import (
	"maps"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// listings holds what a watcher was listed against the state at that index, as another
// stretch, of whomever, has it.
func (s *stretch) listings(others []*stretch, f *finding) {
	for _, o := range others {
		if o == s || !o.renewals || s.from < o.from || s.from > o.until {
			continue
		}
		had, has := o.stateAt(s.from), s.stateAt(s.from)
		for _, key := range slices.Sorted(maps.Keys(had)) {
			if w, listed := has[key]; !listed {
				f.violation(heard(had[key], "%s was not listed %q at index %d, and %s was told %s before", s.watcher, key, s.from, o.watcher, toldText(had[key])))
			} else if !sameRecord(recordOf(w), recordOf(had[key])) {
				f.violation(heard(w, "%s was listed %q at index %d as epoch %d of %q until %d ms, floor %d, and %s was told %s, floor %d, before", s.watcher, key, s.from,
					w.Epoch, w.Owner, w.LeaseUntil.Millis(), w.Floor, o.watcher, toldText(had[key]), had[key].Floor))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(has)) {
			if _, told := had[key]; !told {
				f.violation(heard(has[key], "%s was listed %q at index %d, and %s was told nothing of it until then", s.watcher, key, s.from, o.watcher))
			}
		}
	}
}

// stateAt is the last that was told of each key up to index.
func (s *stretch) stateAt(index uint64) map[string]history.Watched {
	state := map[string]history.Watched{}
	for _, w := range s.listed {
		state[w.Key] = w
	}
	for _, w := range s.told {
		if w.Index <= index {
			state[w.Key] = w
		}
	}
	return state
}

// recordOf is the record in what was told, in whole milliseconds.
func recordOf(w history.Watched) lease.Record {
	return lease.Record{
		Key: w.Key, Owner: w.Owner, Epoch: w.Epoch, LeaseUntil: lease.InstantOfMillis(w.LeaseUntil.Millis()), ForgottenAtEpoch: w.Floor,
	}
}
