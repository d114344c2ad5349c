package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
	"github.com/leasenode/leasenode/lease"
)

// storedHistory holds the cluster's own history of each key against the answers.
func storedHistory(s *subject, f *finding) {
	if len(s.run.Stored) == 0 {
		if anyChanged(s.run.Ops) || len(s.run.Beliefs) > 0 {
			f.unknown("the run has no stored history")
		}
		return
	}
	byKey := map[string][]lease.Entry{}
	for _, e := range s.run.Stored {
		byKey[e.Key] = append(byKey[e.Key], e)
		s.alsoOf(e.Key)
	}
	held := heldByKey(s.run)
	for _, key := range slices.Sorted(maps.Keys(s.grants)) {
		h := storedOf{finding: f, subject: s, key: key, entries: byKey[key], acknowledged: map[act][]history.Op{}}
		for _, op := range s.ops[key] {
			if changed(op) {
				a := actOf(op)
				h.acknowledged[a] = append(h.acknowledged[a], op)
			}
		}
		f.Looked += len(h.entries)
		h.order()
		h.unheld(held[key])
		if s.grants[key].unrecorded {
			continue // there is nothing to hold single entries against
		}
		h.invented()
		h.missing()
	}
}

func anyChanged(ops []history.Op) bool {
	for _, op := range ops {
		if changed(op) {
			return true
		}
	}
	return false
}

// act is what an entry and an acknowledged change have in common.
type act struct {
	op    history.Kind
	owner string
	epoch uint64
	at    int64 // milliseconds of the cluster clock
}

func actOf(op history.Op) act {
	return act{op.Kind, op.Record.Owner, op.Record.Epoch, op.Now.Millis()}
}

func actOfEntry(e lease.Entry) act {
	return act{history.Kind(e.Op.String()), e.Owner, e.Epoch, e.At.Millis()}
}

// storedOf looks at the stored history of one key.
type storedOf struct {
	*finding
	subject      *subject
	key          string
	entries      []lease.Entry
	acknowledged map[act][]history.Op
}

func (h storedOf) wrong(format string, args ...any) {
	last := h.subject.run.Info.Length
	h.violation(Violation{Key: h.key, From: last, Until: last, Text: fmt.Sprintf(format, args...)})
}

// order holds each entry against the one before it.
func (h storedOf) order() {
	for i, e := range h.entries[min(1, len(h.entries)):] {
		before := h.entries[i]
		switch {
		case e.Index < before.Index || e.At < before.At:
			h.wrong("the history is not in order: %s comes after %s", entryText(e), entryText(before))
		case e.Op == lease.OpAcquire && e.Epoch != before.Epoch+1:
			h.wrong("the history goes from %s to %s: an epoch moves by one", entryText(before), entryText(e))
		case e.Op != lease.OpAcquire && (e.Epoch != before.Epoch || e.Owner != before.Owner):
			h.wrong("the history has %s in the middle of another's grant, %s", entryText(e), entryText(before))
		}
	}
}

// invented looks for entries that no operation can have made.
func (h storedOf) invented() {
	used := map[act]int{}
	for _, e := range h.entries {
		a := actOfEntry(e)
		used[a]++
		if used[a] > len(h.acknowledged[a]) && !h.perhapsDone(e) {
			h.wrong("the history has %s, which no operation can have done", entryText(e))
		}
	}
}

// perhapsDone reports whether an operation that nobody was answered can have made e.
func (h storedOf) perhapsDone(e lease.Entry) bool {
	for _, op := range h.subject.ops[h.key] {
		if perhaps(op) && string(op.Kind) == e.Op.String() && op.Owner == e.Owner && (op.Kind == history.Acquire || op.Epoch == e.Epoch) {
			return true
		}
	}
	return false
}

// missing looks for acknowledged changes that the history does not have and should.
func (h storedOf) missing() {
	stored := map[act]int{}
	var latest uint64
	for _, e := range h.entries {
		stored[actOfEntry(e)]++
		latest = max(latest, e.Epoch)
	}
	for _, op := range h.subject.ops[h.key] {
		a := actOf(op)
		if !changed(op) {
			continue
		}
		if stored[a] > 0 {
			stored[a]--
			continue
		}
		if h.trimmed(op, latest) {
			continue
		}
		h.violation(by(fmt.Sprintf("acknowledged, but not in the stored history: %s", model.Describe(op)), op))
	}
}

// trimmed reports whether the history may have forgotten op: its grant is too long ago,
// or there are enough later renewals.
func (h storedOf) trimmed(op history.Op, latest uint64) bool {
	if op.Record.Epoch+uint64(h.subject.options.KeptGrants) <= latest {
		return true
	}
	if op.Kind != history.Renew {
		return false
	}
	later := 0
	for _, e := range h.entries {
		if e.Op == lease.OpRenew && e.At.Millis() >= op.Now.Millis() {
			later++
		}
	}
	return later >= h.subject.options.KeptRenewals
}

func entryText(e lease.Entry) string {
	return fmt.Sprintf("%v of epoch %d by %q (index %d, clock %d ms)", e.Op, e.Epoch, e.Owner, e.Index, e.At.Millis())
}
