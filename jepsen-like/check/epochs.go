package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
)

func epochs(s *subject, f *finding) {
	for _, key := range slices.Sorted(maps.Keys(s.grants)) {
		e := epochsOf{finding: f, key: key, grants: s.grants[key]}
		e.owners(s.ops[key])
		e.attempts(s.ops[key])
		e.order(s.ops[key])
		e.gaps(s.ops[key])
		e.elsewhere(s.run)
	}
}

// epochsOf looks at the epochs of one key.
type epochsOf struct {
	*finding
	key    string
	grants *grants
}

// owners holds every record that was shown against the first that was of its epoch.
func (e epochsOf) owners(ops []history.Op) {
	first := map[uint64]history.Op{}
	for _, op := range ops {
		if !answers(op) {
			continue
		}
		e.Looked++
		epoch := op.Record.Epoch
		before, known := first[epoch]
		switch {
		case !known:
			first[epoch] = op
		case before.Record.Owner != op.Record.Owner:
			e.violation(by(fmt.Sprintf("epoch %d is shown as of two owners: %s; %s", epoch, model.Describe(before), model.Describe(op)), before, op))
		}
		if op.Kind == history.Acquire && op.Outcome == history.OK && op.Record.Owner != op.Owner {
			e.violation(by(fmt.Sprintf("an acquire is answered with another owner's grant: %s", model.Describe(op)), op))
		}
	}
}

// attempts looks for an epoch that two attempts got.
func (e epochsOf) attempts(ops []history.Op) {
	got := map[uint64]history.Op{}
	for _, op := range ops {
		if op.Kind != history.Acquire || op.Outcome != history.OK {
			continue
		}
		before, known := got[op.Record.Epoch]
		switch {
		case !known:
			got[op.Record.Epoch] = op
		case before.Changed && op.Changed:
			e.violation(by(fmt.Sprintf("epoch %d was granted twice: %s; %s", op.Record.Epoch, model.Describe(before), model.Describe(op)), before, op))
		case before.RequestID != op.RequestID || op.RequestID == "":
			e.violation(by(fmt.Sprintf("epoch %d went to two attempts: %s; %s", op.Record.Epoch, model.Describe(before), model.Describe(op)), before, op))
		}
	}
}

// order holds every record against those that were shown before it was asked for.
func (e epochsOf) order(ops []history.Op) {
	var latest history.Op
	inOrder(ops, func(op history.Op) {
		if answers(op) && op.Record.Epoch > latest.Record.Epoch {
			latest = op
		}
	}, func(op history.Op) {
		if answers(op) && op.Record.Epoch < latest.Record.Epoch {
			e.violation(by(fmt.Sprintf("the epoch went back from %d to %d: %s; and after it %s", latest.Record.Epoch, op.Record.Epoch, model.Describe(latest), model.Describe(op)), latest, op))
		}
	})
}

// gaps looks for epochs that nobody can have got.
func (e epochsOf) gaps(ops []history.Op) {
	for epoch := uint64(1); epoch <= e.grants.latest; epoch++ {
		if e.grants.possible(epoch, e.grants.owner[epoch]) {
			continue
		}
		text := fmt.Sprintf("epoch %d was granted, but to nobody: no acquire can have got it", epoch)
		if owner, shown := e.grants.owner[epoch]; shown {
			text = fmt.Sprintf("epoch %d was granted to %q, who has no acquire that can have got it", epoch, owner)
		}
		e.violation(e.shownFrom(ops, epoch, text))
	}
}

// shownFrom puts text to the first operation that shows epoch, or a later one.
func (e epochsOf) shownFrom(ops []history.Op, epoch uint64, text string) Violation {
	for _, op := range ops {
		if answers(op) && op.Record.Epoch >= epoch {
			return by(text+": "+model.Describe(op), op)
		}
	}
	return Violation{Key: e.key, Text: text}
}

// elsewhere holds beliefs and the last record against the grants.
func (e epochsOf) elsewhere(run history.Run) {
	holders := map[uint64]string{}
	for _, b := range run.Beliefs {
		if b.Key != e.key {
			continue
		}
		v := Violation{Key: b.Key, From: b.From, Until: b.Until}
		if !e.grants.possible(b.Epoch, "") {
			v.Text = fmt.Sprintf("holder %q believes in epoch %d, which was not granted", b.Holder, b.Epoch)
			e.violation(v)
		}
		if other, known := holders[b.Epoch]; known && other != b.Holder {
			v.Text = fmt.Sprintf("holders %q and %q both believe in epoch %d", other, b.Holder, b.Epoch)
			e.violation(v)
		}
		holders[b.Epoch] = b.Holder
	}
	for _, r := range run.Records {
		if owner := e.grants.owner[r.Epoch]; r.Key == e.key && r.Epoch > 0 && owner != r.Owner {
			e.violation(Violation{Key: r.Key, Text: fmt.Sprintf("epoch %d is %q's in the last record and was %q's before", r.Epoch, r.Owner, owner)})
		}
	}
}
