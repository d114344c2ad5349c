package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// recorded looks whether the record is one that can have been taken at all: nothing of it
// is missing or there twice, and each line says what such a line says. The other checks
// rely on that, and do not look at what they need not.
func recorded(s *subject, f *finding) {
	operations(s.run, f)
	for _, b := range s.run.Beliefs {
		f.Looked++
		if b.From < 0 || b.Until <= b.From || b.Epoch == 0 || b.Holder == "" {
			f.violation(Violation{Key: b.Key, From: b.From, Until: b.Until, Text: fmt.Sprintf("%q is recorded to have believed in epoch %d from %v to %v", b.Holder, b.Epoch, b.From, b.Until)})
		}
	}
	for _, fault := range s.run.Faults {
		f.Looked++
		if fault.From < 0 || fault.Until < fault.From {
			f.violation(Violation{From: fault.From, Until: fault.Until, Text: fmt.Sprintf("%s is recorded from %v to %v", fault.Kind, fault.From, fault.Until)})
		}
	}
	knownNodes(s.run, f)
	phases(s.run, f)
	watcherLines(s.run, f)
}

// knownNodes looks whether the run has all nodes of which something is recorded.
func knownNodes(run history.Run, f *finding) {
	named := map[string]bool{}
	for _, op := range run.Ops {
		named[op.Node] = true
	}
	for _, d := range run.Digests {
		named[d.Node] = true
	}
	for _, r := range run.Recoveries {
		named[r.Node] = true
	}
	for _, w := range run.Watched {
		named[w.Node] = true
	}
	delete(named, "") // the client chose
	if len(run.Info.Nodes) == 0 && len(named) > 0 {
		f.unknown("it is not recorded which nodes there were")
		return
	}
	for _, node := range slices.Sorted(maps.Keys(named)) {
		if !slices.Contains(run.Info.Nodes, node) {
			f.violation(Violation{Text: fmt.Sprintf("there is no node %q, of which something is recorded", node)})
		}
	}
}

// operations looks at the record of what clients asked for.
func operations(run history.Run, f *finding) {
	ids := map[int]history.Op{}
	last := map[string]history.Op{}
	attempts := map[string]history.Op{}
	highest := 0
	for _, op := range byCall(run.Ops) {
		f.Looked++
		if problem := misshapen(op); problem != "" {
			f.violation(by(fmt.Sprintf("operation %d, %s of %q, %s", op.ID, op.Kind, op.Client, problem), op))
		}
		if other, twice := ids[op.ID]; twice {
			f.violation(by(fmt.Sprintf("there are two operations %d", op.ID), other, op))
		}
		ids[op.ID], highest = op, max(highest, op.ID)
		if before, known := last[op.Client]; known && op.Call < before.Return {
			f.violation(by(fmt.Sprintf("%q has two operations out at once, %d and %d", op.Client, before.ID, op.ID), before, op))
		}
		last[op.Client] = op
		if first, known := attempts[op.RequestID]; known && op.RequestID != "" && first.Key != op.Key {
			f.violation(by(fmt.Sprintf("operations %d and %d ask for different keys under one request id", first.ID, op.ID), first, op))
		}
		attempts[op.RequestID] = op
	}
	if missing := highest - len(ids); missing > 0 {
		f.unknown("%d operations are missing", missing)
	}
}

// misshapen says what op cannot be; "" if it can be all that it is.
func misshapen(op history.Op) string {
	refused := op.Outcome == history.Held || op.Outcome == history.Lost
	switch {
	case op.ID < 1 || op.Client == "" || op.Key == "" || op.Call < 0 || op.Return < op.Call || op.Tries < 0:
		return "has no number, no client, no key, or no time"
	case op.Outcome != history.Invalid && !asks(op):
		return "does not ask for what such an operation asks for"
	case tells(op) && op.Record.Key != op.Key:
		return fmt.Sprintf("is answered with the key %q", op.Record.Key)
	case !tells(op) && (op.Record.Epoch != 0 || op.Record.Key != "" || op.Now != 0 || op.Remaining != 0 || op.Changed):
		return "tells an answer and was not answered"
	case refused && (op.Now != 0 || op.Changed):
		return "was refused and tells what no refusal tells"
	case op.Remaining < 0 || op.Outcome == history.OK && op.Error != "":
		return "is answered with an error"
	default:
		return ""
	}
}

// asks reports whether op has what its kind needs, has nothing else, and ended in a way
// in which its kind can end.
func asks(op history.Op) bool {
	owns, grants := op.Owner != "", op.Epoch > 0
	switch op.Kind {
	case history.Get, history.GetStale:
		return !owns && !grants && op.TTL == 0 && op.RequestID == "" && !op.Changed && (op.Outcome == history.OK || !tells(op)) && op.Outcome != history.Exhausted
	case history.Acquire:
		return owns && !grants && op.TTL > 0
	case history.Renew:
		return owns && grants && op.TTL > 0 && op.RequestID == "" && op.Outcome != history.Held && op.Outcome != history.Exhausted
	default:
		return owns && grants && op.TTL == 0 && op.RequestID == "" && op.Outcome != history.Held && op.Outcome != history.Exhausted
	}
}

// phases looks at the record of how soon nodes served. In the last phase some can be
// missing, if the run was ended in it.
func phases(run history.Run, f *finding) {
	served := map[int64]map[string]bool{} // of each phase
	last := int64(-1)
	for _, r := range run.Recoveries {
		f.Looked++
		healed := int64(r.Healed)
		last = max(last, healed)
		if served[healed] == nil {
			served[healed] = map[string]bool{}
		}
		if served[healed][r.Node] || r.Served >= 0 && r.Served < r.Healed {
			f.violation(Violation{From: r.Healed, Until: max(r.Healed, r.Served), Text: fmt.Sprintf("node %q served twice in one phase, or before the faults had healed", r.Node)})
		}
		served[healed][r.Node] = true
	}
	for healed, nodes := range served {
		if healed != last && len(nodes) < len(run.Info.Nodes) {
			f.unknown("only %d nodes are recorded to have served in a phase", len(nodes))
		}
	}
}

// watcherLines looks at the record of what watchers were told, line by line.
func watcherLines(run history.Run, f *finding) {
	last := map[string]history.Watched{}
	for _, w := range run.Watched {
		f.Looked++
		before, began := last[w.Watcher]
		problem := misshapenMark(w)
		switch {
		case problem != "":
		case began == (w.Mark == history.WatchBegan):
			problem = "a watcher begins once, and first"
		case began && w.When < before.When:
			problem = "it was told before what comes before"
		case began && w.Renewals != before.Renewals:
			problem = "a watcher is told renewals or is not"
		}
		if problem != "" {
			f.violation(heard(w, "%s, %d: %s cannot be: %s", w.Watcher, w.Seq, w.Mark, problem))
		}
		last[w.Watcher] = w
	}
}

// misshapenMark says what is there too much or too little for the mark of w; "" if
// nothing is.
func misshapenMark(w history.Watched) string {
	_, isEvent := lease.ParseEventKind(w.Event)
	record := w.Key != "" && w.Owner != "" && w.Epoch > 0 && w.LeaseUntil > 0
	noRecord := w.Key == "" && w.Owner == "" && w.Epoch == 0 && w.LeaseUntil == 0 && w.Floor == 0
	place := w.Index > 0 && w.At > 0
	noPlace := w.Index == 0 && w.At == 0
	var fits bool
	switch w.Mark {
	case history.WatchBegan:
		fits = noRecord && noPlace && w.Event == "" && w.Error == ""
	case history.WatchReset, history.WatchReached:
		fits = noRecord && w.Index > 0 && w.Event == "" && w.Error == ""
	case history.WatchListed:
		fits = record && noPlace && w.Event == "" && w.Error == ""
	case history.WatchTold:
		fits = record && place && isEvent && w.Error == ""
	case history.WatchRefused:
		fits = noRecord && w.At == 0 && w.Event == "" && w.Error != ""
	default:
		return "there is no such mark"
	}
	if !fits {
		return "it tells something else than such a line tells"
	}
	return ""
}
