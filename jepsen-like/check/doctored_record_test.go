package check_test

import (
	"slices"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// doctoredLines are records that nobody can have taken.
func doctoredLines() map[string]doctor {
	belief := func(change func(*history.Belief)) doctor { return func(r *history.Run) { change(&r.Beliefs[0]) } }
	fault := func(change func(*history.Fault)) doctor { return func(r *history.Run) { change(&r.Faults[0]) } }
	cases := map[string]doctor{
		"a number twice":       op(7, func(o *history.Op) { o.ID = 6 }),
		"two at once":          op(7, func(o *history.Op) { o.Call = 429 * ms }),
		"an id of another key": add(history.Op{Client: "d", Kind: history.Acquire, Owner: "c", TTL: time.Second, RequestID: "c1", Call: 3400 * ms, Return: 3500 * ms, Outcome: history.Unavailable}),
		"a belief backwards":   belief(func(b *history.Belief) { b.Until = b.From }),
		"a belief before time": belief(func(b *history.Belief) { b.From = -1 }),
		"a belief in no grant": belief(func(b *history.Belief) { b.Epoch = 0 }),
		"a belief of nobody":   belief(func(b *history.Belief) { b.Holder = "" }),
		"a fault backwards":    fault(func(f *history.Fault) { f.Until = f.From - 1 }),
		"a fault before time":  fault(func(f *history.Fault) { f.From = -1 }),
		"a node that is not":   op(7, func(o *history.Op) { o.Node = "n4" }),
		"a digest of none":     func(r *history.Run) { r.Digests[0].Node = "n4" },
		"a recovery of none":   func(r *history.Run) { r.Recoveries[0].Node = "n4" },
		"watched at none":      func(r *history.Run) { r.Watched[2].Node = "n4" },
		"a recovery twice":     func(r *history.Run) { r.Recoveries[1].Node = "n1" },
		"a recovery before it": func(r *history.Run) { r.Recoveries[0].Served = r.Recoveries[0].Healed - 1 },
		"a watcher begins twice": watchLine(2, func(w *history.Watched) {
			*w = history.Watched{Watcher: w.Watcher, Seq: w.Seq, Renewals: true, Mark: history.WatchBegan}
		}),
		"a watcher never begins":  func(r *history.Run) { r.Watched = r.Watched[1:] },
		"told before the last":    watchLine(3, func(w *history.Watched) { w.When = 0 }),
		"renewals by times":       watchLine(3, func(w *history.Watched) { w.Renewals = false }),
		"a mark that is not":      watchLine(3, func(w *history.Watched) { w.Mark = "heard" }),
		"a refusal with a record": watchLine(3, func(w *history.Watched) { w.Mark, w.Error, w.Event = history.WatchRefused, "why", "" }),
		"listed at a place":       watchLine(3, func(w *history.Watched) { w.Mark, w.Event = history.WatchListed, "" }),
	}
	cases["an id of another key"] = all(cases["an id of another key"], func(r *history.Run) { r.Ops[len(r.Ops)-1].Key = "other" })
	for what, change := range misshapen() {
		cases["an operation with "+what] = change
	}
	for what, change := range misshapenMarks() {
		cases[what] = change
	}
	return cases
}

// misshapen are operations of the wrong shape.
func misshapen() map[string]doctor {
	return map[string]doctor{
		"no number":                   op(7, func(o *history.Op) { o.ID = 0 }),
		"no client":                   op(7, func(o *history.Op) { o.Client = "" }),
		"no key":                      op(10, func(o *history.Op) { o.Key = "" }),
		"no time":                     op(1, func(o *history.Op) { o.Call = -1 }),
		"its end first":               op(10, func(o *history.Op) { o.Return = o.Call - 1 }),
		"less than no tries":          op(10, func(o *history.Op) { o.Tries = -1 }),
		"an answer about another key": op(2, func(o *history.Op) { o.Record.Key = "other" }),
		"an epoch and no answer":      op(10, func(o *history.Op) { o.Record.Epoch = 1 }),
		"a record and no answer":      op(10, func(o *history.Op) { o.Record.Key = "k" }),
		"a clock and no answer":       op(10, func(o *history.Op) { o.Now = 1 }),
		"what remains and no answer":  op(10, func(o *history.Op) { o.Remaining = 1 }),
		"a change and no answer":      op(10, func(o *history.Op) { o.Changed = true }),
		"a clock in a refusal":        op(2, func(o *history.Op) { o.Now = at(25 * ms) }),
		"a change in a refusal":       op(2, func(o *history.Op) { o.Changed = true }),
		"less than nothing left":      op(14, func(o *history.Op) { o.Remaining = -1 }),
		"an error in an answer":       op(3, func(o *history.Op) { o.Error = "why" }),
		"an owner who reads":          op(7, func(o *history.Op) { o.Owner = "b" }),
		"an epoch to read":            op(7, func(o *history.Op) { o.Epoch = 1 }),
		"a ttl to read":               op(7, func(o *history.Op) { o.TTL = 1 }),
		"an id to read":               op(7, func(o *history.Op) { o.RequestID = "b9" }),
		"a read that changes":         op(7, func(o *history.Op) { o.Changed = true }),
		"a read that is refused":      op(7, func(o *history.Op) { o.Outcome, o.Now = history.Lost, 0 }),
		"a read that is exhausted":    add(history.Op{Client: "d", Kind: history.Get, Call: 1, Return: 2, Outcome: history.Exhausted}),
		"nobody who acquires":         op(2, func(o *history.Op) { o.Owner = "" }),
		"an epoch to acquire":         op(2, func(o *history.Op) { o.Epoch = 1 }),
		"no ttl to acquire":           op(2, func(o *history.Op) { o.TTL = 0 }),
		"nobody who renews":           op(10, func(o *history.Op) { o.Owner = "" }),
		"no epoch to renew":           op(10, func(o *history.Op) { o.Epoch = 0 }),
		"no ttl to renew":             op(10, func(o *history.Op) { o.TTL = 0 }),
		"an id to renew":              op(10, func(o *history.Op) { o.RequestID = "b9" }),
		"a renewal that is held":      op(9, func(o *history.Op) { o.Outcome = history.Held }),
		"a renewal that is exhausted": op(10, func(o *history.Op) { o.Outcome = history.Exhausted }),
		"nobody who releases":         op(13, func(o *history.Op) { o.Owner = "" }),
		"no epoch to release":         op(13, func(o *history.Op) { o.Epoch = 0 }),
		"a ttl to release":            op(13, func(o *history.Op) { o.TTL = 1 }),
		"an id to release":            op(13, func(o *history.Op) { o.RequestID = "b9" }),
		"a release that is held":      op(13, func(o *history.Op) { o.Outcome = history.Held }),
		"a release that is exhausted": op(13, func(o *history.Op) { o.Outcome, o.Record = history.Exhausted, lease.Record{} }),
	}
}

// misshapenMarks give each mark, in turn, what it has not.
func misshapenMarks() map[string]doctor {
	lines := map[string]int{"began": 0, "reset": 1, "told": 2, "reached": 10}
	too := map[string]func(*history.Watched){
		"a key": func(w *history.Watched) { w.Key = "k" }, "an owner": func(w *history.Watched) { w.Owner = "a" },
		"an epoch": func(w *history.Watched) { w.Epoch = 1 }, "an end": func(w *history.Watched) { w.LeaseUntil = 1 },
		"a floor": func(w *history.Watched) { w.Floor = 1 }, "an event": func(w *history.Watched) { w.Event = "renewed" },
		"an error": func(w *history.Watched) { w.Error = "why" },
	}
	cases := map[string]doctor{
		"began with an index": watchLine(0, func(w *history.Watched) { w.Index = 1 }),
		"began with a clock":  watchLine(0, func(w *history.Watched) { w.At = 1 }),
		"reset at no index":   watchLine(1, func(w *history.Watched) { w.Index = 0 }),
		"told with an error":  watchLine(2, func(w *history.Watched) { w.Error = "why" }),
		"told no key":         watchLine(2, func(w *history.Watched) { w.Key = "" }),
		"told no owner":       watchLine(2, func(w *history.Watched) { w.Owner = "" }),
		"told no epoch":       watchLine(2, func(w *history.Watched) { w.Epoch = 0 }),
		"told no end":         watchLine(2, func(w *history.Watched) { w.LeaseUntil = 0 }),
		"told at no index":    watchLine(2, func(w *history.Watched) { w.Index = 0 }),
		"told at no clock":    watchLine(2, func(w *history.Watched) { w.At = 0 }),
		"told nothing known":  watchLine(2, func(w *history.Watched) { w.Event = "borrowed" }),
		"refused without why": watchLine(2, func(w *history.Watched) {
			*w = history.Watched{Watcher: w.Watcher, Seq: w.Seq, Renewals: true, Index: 11, Mark: history.WatchRefused}
		}),
		"refused at a clock": watchLine(2, func(w *history.Watched) {
			*w = history.Watched{Watcher: w.Watcher, Seq: w.Seq, Renewals: true, Index: 11, At: w.At, Error: "why", Mark: history.WatchRefused}
		}),
	}
	for mark, line := range lines {
		for what, add := range too {
			if mark != "told" {
				cases[mark+" with "+what] = watchLine(line, add)
			}
		}
	}
	return cases
}

// watchLine changes the i-th line of the first watcher, and nothing that follows.
func watchLine(i int, change func(*history.Watched)) doctor {
	return func(r *history.Run) { change(&r.Watched[i]) }
}

// doctoredCertainties are holders who are certain for too long, with nobody beside them.
func doctoredCertainties() map[string]doctor {
	until := func(i int, until time.Duration) doctor { return func(r *history.Run) { r.Beliefs[i].Until = until } }
	return map[string]doctor{
		"after a release":               until(0, 516*ms+1),
		"after the next grant":          all(until(2, 3016*ms+1), func(r *history.Run) { r.Beliefs = r.Beliefs[:3] }),
		"after what can have been told": all(heldAtTheEnd, until(2, 4981*ms+1)),
		"after its end on the clock":    all(heldAtTheEnd, until(2, 1711*ms+2), elsewhere),
		"after its end, renewed": all(heldAtTheEnd, watch(bothWatches, func(all []history.Watched) []history.Watched {
			return slices.Insert(all, len(all)-1, history.Watched{
				Mark: history.WatchTold, Event: "renewed", Key: "k", Owner: "b", Epoch: 2, LeaseUntil: at(1655 * ms), Floor: 1, Index: 15, At: at(655 * ms),
			})
		}), until(2, 1711*ms+2), elsewhere),
	}
}

// heldAtTheEnd ends the good run, in which time goes on, with the grant of "b" that nobody
// was told the end of. The clock was last told at 625 ms, by 630 ms.
func heldAtTheEnd(r *history.Run) {
	all(without(11), without(12), without(13), without(14), watch(bothWatches, func(all []history.Watched) []history.Watched {
		return append(all[:where(all, lease.Acquired, 2)+1], history.Watched{Mark: history.WatchReached, Index: 15, At: at(605 * ms)})
	}))(r)
	r.Beliefs, r.Writes, r.Stored, r.Records[0] = r.Beliefs[:3], r.Writes[:3], r.Stored[:5], rec("b", 2, 1605*ms, 1)
}

// elsewhere has the clock be told past the end of what "b" holds, by 1710 ms.
func elsewhere(r *history.Run) {
	r.Ops = append(r.Ops, history.Op{
		ID: 11, Client: "d", Kind: history.Acquire, Key: "other", Owner: "d", TTL: time.Second, RequestID: "d1", Tries: 1, Call: 1700 * ms, Return: 1710 * ms,
		Outcome: history.OK, Changed: true, Record: lease.Record{Key: "other", Owner: "d", Epoch: 1, LeaseUntil: at(2705 * ms)}, Now: at(1705 * ms), Remaining: time.Second,
	})
}

// A holder may be certain as long as an answer can have told it.
func TestAHolderMayBeCertainUntilItsEnd(t *testing.T) {
	for name, doctored := range map[string]doctor{
		"a grant that has not ended":         heldAtTheEnd,
		"to the last moment":                 all(heldAtTheEnd, func(r *history.Run) { r.Beliefs[2].Until = 4980 * ms }),
		"as long as the clock was not there": all(heldAtTheEnd, elsewhere, func(r *history.Run) { r.Beliefs[2].Until = 1710 * ms }),
		"of which not all was told": all(heldAtTheEnd, func(r *history.Run) { r.Beliefs[2].Until = 9 * time.Second }, watch(bothWatches, func(all []history.Watched) []history.Watched {
			i := where(all, lease.Acquired, 2)
			return []history.Watched{
				{Mark: history.WatchBegan},
				{Mark: history.WatchReset, Index: 15, At: at(605 * ms)},
				{Mark: history.WatchListed, Key: "k", Owner: "b", Epoch: 2, LeaseUntil: all[i].LeaseUntil, Floor: 1},
			}
		})),
		"until its release is told": func(r *history.Run) { r.Beliefs[0].Until = 515 * ms },
		"until the next is told":    func(r *history.Run) { r.Beliefs[2].Until = 3010 * ms },
	} {
		run := goodRun()
		doctored(&run)
		if v := check.Judge(run, check.Options{}); v.Check("believed").Status != check.Pass {
			t.Errorf("%s: %s", name, v.Summary())
		}
	}
}

// What is missing of a record is no lie, and no pass either.
func TestARecordWithGapsIsUnknown(t *testing.T) {
	phase := func(r *history.Run) {
		r.Recoveries = append(r.Recoveries, history.Recovery{Node: "n1", Healed: 3500 * ms, Served: 3500 * ms})
	}
	for name, c := range map[string]struct {
		doctored doctor
		want     check.Status
	}{
		"an operation is missing":          {without(7), check.Unknown},
		"no nodes are named":               {func(r *history.Run) { r.Info.Nodes = nil }, check.Unknown},
		"nor is there anything about them": {func(r *history.Run) { r.Info.Nodes, r.Digests, r.Recoveries = nil, nil, nil }, check.Pass},
		"a node of an earlier phase":       {phase, check.Unknown},
		"a node of the last phase":         {func(r *history.Run) {}, check.Pass},
		"none of the earlier phase": {all(phase, func(r *history.Run) {
			r.Recoveries = append(r.Recoveries, history.Recovery{Node: "n3", Healed: 1700 * ms, Served: -1})
		}), check.Pass},
		"ids that the client makes":            {all(op(1, func(o *history.Op) { o.RequestID, o.Tries = "", 0 }), op(8, func(o *history.Op) { o.RequestID, o.Tries, o.Key = "", 0, "l"; o.Record.Key = "l" })), check.Pass},
		"an operation that is asked for badly": {op(10, func(o *history.Op) { o.Outcome, o.Epoch = history.Invalid, 0 }), check.Pass},
		"a position that is refused": {watch(oneWatcher, func(all []history.Watched) []history.Watched {
			return append(all, history.Watched{Mark: history.WatchRefused, Index: 18, Error: "of the future"})
		}), check.Pass},
	} {
		run := goodRun()
		c.doctored(&run)
		if got := check.Judge(run, check.Options{}).Check("recorded"); got.Status != c.want {
			t.Errorf("%s: recorded is %s, want %s: %+v", name, got.Status, c.want, got)
		}
	}
}
