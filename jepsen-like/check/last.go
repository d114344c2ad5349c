package check

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
	"github.com/leasenode/leasenode/lease"
)

// acknowledged holds the last records against the answers, against what holders had, and
// against what watchers were told.
func acknowledged(s *subject, f *finding) {
	if len(s.run.Records) == 0 {
		if anyChanged(s.run.Ops) || len(s.run.Beliefs) > 0 {
			f.unknown("the run has no last records")
		}
		return
	}
	records := s.recordsOf()
	f.Looked = len(records)
	if twice := len(s.run.Records) - len(records); twice > 0 {
		f.violation(Violation{Text: fmt.Sprintf("%d keys have two last records", twice)})
	}
	heldLast(s, records, f)
	toldLast(s, records, f)
	for _, key := range s.keys {
		for _, op := range s.ops[key] {
			if changed(op) && missingFrom(records[key], op, s.grants[key]) {
				v := by(fmt.Sprintf("acknowledged, but lost: %s; the last record is epoch %d of %q until %d ms, floor %d", model.Describe(op),
					records[key].Epoch, records[key].Owner, records[key].LeaseUntil.Millis(), records[key].ForgottenAtEpoch), op)
				v.Until = max(v.Until, s.run.Info.Length)
				f.violation(v)
				break // what was built on it is lost with it
			}
		}
	}
}

// missingFrom reports whether r cannot be what came after op.
func missingFrom(r lease.Record, op history.Op, g *grants) bool {
	if r.Epoch < op.Record.Epoch || r.ForgottenAtEpoch < op.Record.ForgottenAtEpoch {
		return true
	}
	return r.Epoch == op.Record.Epoch && op.Kind != history.Release && len(g.releases[r.Epoch]) == 0 &&
		r.LeaseUntil.Millis() < op.Record.LeaseUntil.Millis()
}

// heldLast looks for grants that a holder had and the last record of the key is behind.
func heldLast(s *subject, records map[string]lease.Record, f *finding) {
	byKey := heldByKey(s.run)
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		latest := slices.MaxFunc(slices.Collect(maps.Keys(byKey[key])), held.compare)
		if records[key].Epoch < latest.epoch {
			f.violation(Violation{Key: key, From: byKey[key][latest], Until: max(byKey[key][latest], s.run.Info.Length), Text: fmt.Sprintf(
				"%q held epoch %d, and the last record has epoch %d", latest.holder, latest.epoch, records[key].Epoch)})
		}
	}
}

// toldLast looks for last records that are none of the states that watchers were told,
// though one of them was told all that happened. What comes later may have been done by
// an operation that was not answered, or by a holder of whom no operations are recorded.
func toldLast(s *subject, records map[string]lease.Record, f *finding) {
	stretches, p := gatherStretches(s, &finding{}), gatherPace(s.run)
	states := map[string][]lease.Record{}
	for _, stretch := range stretches {
		for _, w := range slices.Concat(stretch.listed, stretch.told) {
			states[w.Key] = append(states[w.Key], recordOf(w))
		}
	}
	for _, stretch := range stretches {
		if !stretch.renewals || stretch.until < p.lastIndex {
			continue
		}
		last := stretch.stateAt(stretch.until)
		for _, key := range slices.Sorted(maps.Keys(last)) {
			r := records[key]
			r.LeaseUntil = lease.InstantOfMillis(r.LeaseUntil.Millis())
			if slices.ContainsFunc(states[key], func(told lease.Record) bool { return sameRecord(told, r) }) ||
				r.Key != "" && stretch.mayBecome(r, last[key], p) && (len(s.ops[key]) == 0 || s.perhapsMade(r)) {
				continue
			}
			f.violation(Violation{Key: key, From: s.run.Info.Length, Until: s.run.Info.Length, Text: fmt.Sprintf(
				"the last record is epoch %d of %q until %d ms, floor %d, and %s, who was told all that happened, was not told that",
				r.Epoch, r.Owner, r.LeaseUntil.Millis(), r.ForgottenAtEpoch, stretch.watcher)})
		}
	}
}

// mayBecome reports whether what came after the stretch, before all was over, may have made
// the record r of what the key was at its end. Then r ends after the stretch, and not later
// than by the longest lease that there was of its key; an epoch that is later has an end of
// its own; and the floor is where it was, or at an epoch since then.
func (s *stretch) mayBecome(r lease.Record, is history.Watched, p pace) bool {
	var longest, latest time.Duration
	for _, w := range s.told {
		if latest = w.When; w.Key == r.Key {
			longest = max(longest, w.LeaseUntil.Sub(w.At))
		}
	}
	was := recordOf(is)
	switch {
	case r.LeaseUntil.Millis() < s.ended.Millis() || r.LeaseUntil >= s.ended.Add(longest+p.ended-latest):
		return false
	case r.Epoch < was.Epoch || r.Epoch == was.Epoch && r.Owner != was.Owner:
		return false
	case r.Epoch > was.Epoch && r.LeaseUntil == was.LeaseUntil:
		return false
	default:
		return r.ForgottenAtEpoch == was.ForgottenAtEpoch || r.ForgottenAtEpoch >= was.Epoch && r.ForgottenAtEpoch <= r.Epoch
	}
}

// perhapsMade reports whether an operation that was not answered may have made r of what
// was there before.
func (s *subject) perhapsMade(r lease.Record) bool {
	return slices.ContainsFunc(s.ops[r.Key], func(op history.Op) bool {
		return perhaps(op) && op.Owner == r.Owner && (op.Kind == history.Acquire || op.Epoch == r.Epoch)
	})
}

func sameRecord(a, b lease.Record) bool {
	return a.Key == b.Key && a.Owner == b.Owner && a.Epoch == b.Epoch && a.LeaseUntil == b.LeaseUntil && a.ForgottenAtEpoch == b.ForgottenAtEpoch
}
