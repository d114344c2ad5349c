package check

import (
	"fmt"
	"maps"
	"slices"

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

// toldLast looks for last records that are none of the states that a watcher was told,
// though it was told all of them. An operation that was not answered may have come later,
// if operations of the key are recorded.
func toldLast(s *subject, records map[string]lease.Record, f *finding) {
	var last uint64
	for _, e := range s.run.Stored {
		last = max(last, e.Index)
	}
	for _, stretch := range gatherStretches(s, &finding{}) {
		if !stretch.renewals || stretch.until < last {
			continue
		}
		states := stretch.states()
		for _, key := range slices.Sorted(maps.Keys(states)) {
			r := records[key]
			r.LeaseUntil, r.Attributes = lease.InstantOfMillis(r.LeaseUntil.Millis()), nil
			if slices.ContainsFunc(states[key], func(told lease.Record) bool { return sameRecord(told, r) }) || s.perhapsMade(r) {
				continue
			}
			f.violation(Violation{Key: key, From: s.run.Info.Length, Until: s.run.Info.Length, Text: fmt.Sprintf(
				"the last record is epoch %d of %q until %d ms, floor %d, and %s, who was told all that happened, was not told that",
				r.Epoch, r.Owner, r.LeaseUntil.Millis(), r.ForgottenAtEpoch, stretch.watcher)})
		}
	}
}

// perhapsMade reports whether an operation that was not answered may have made r of what
// was there before.
func (s *subject) perhapsMade(r lease.Record) bool {
	return slices.ContainsFunc(s.ops[r.Key], func(op history.Op) bool {
		return perhaps(op) && op.Owner == r.Owner && (op.Kind == history.Acquire || op.Epoch == r.Epoch)
	})
}

// states are what each key was, as far as the watcher was told.
func (s *stretch) states() map[string][]lease.Record {
	all := map[string][]lease.Record{}
	for _, w := range slices.Concat(s.listed, s.told) {
		all[w.Key] = append(all[w.Key], recordOf(w))
	}
	return all
}

func sameRecord(a, b lease.Record) bool {
	return a.Key == b.Key && a.Owner == b.Owner && a.Epoch == b.Epoch && a.LeaseUntil == b.LeaseUntil && a.ForgottenAtEpoch == b.ForgottenAtEpoch
}
