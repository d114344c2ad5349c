package check_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

var quietWatcher = []string{"w2"}

// onlyWatched leaves nothing to hold against what watchers were told but one another.
func onlyWatched(r *history.Run) { r.Stored, r.Ops = nil, nil }

// listedLate has the first watcher begin with a listing after the first renewal.
func listedLate(listed ...history.Watched) doctor {
	return watch(oneWatcher, func(all []history.Watched) []history.Watched {
		i := where(all, lease.Forgotten, 1)
		begin := []history.Watched{{Mark: history.WatchBegan}, {Mark: history.WatchReset, Index: 12, At: at(305 * ms)}}
		return slices.Concat(begin, listed, all[i:])
	})
}

// alsoAll has another watcher be told all of the good run, with renewals.
func alsoAll(r *history.Run) {
	for _, w := range goodWatched() {
		if w.Watcher == "w1" {
			w.Watcher = "w3"
			r.Watched = append(r.Watched, w)
		}
	}
}

// What watchers are told is held against several things, each of which tells by itself.
func TestWhatWatchersAreToldIsHeldAgainstEachThing(t *testing.T) {
	held := history.Watched{Mark: history.WatchListed, Key: "k", Owner: "a", Epoch: 1, LeaseUntil: at(1305 * ms)}
	other := history.Watched{Mark: history.WatchListed, Key: "l", Owner: "a", Epoch: 1, LeaseUntil: at(1305 * ms)}
	wrongly := func(change func(*history.Watched)) history.Watched {
		w := held
		change(&w)
		return w
	}
	differs := func(kind lease.EventKind, epoch uint64, change func(*history.Watched)) doctor {
		return all(onlyWatched, watch(quietWatcher, altered(kind, epoch, change)))
	}
	again := func(kind lease.EventKind, epoch uint64, change func(*history.Watched)) doctor {
		return watch(oneWatcher, func(all []history.Watched) []history.Watched {
			i := where(all, kind, epoch)
			w := all[i]
			change(&w)
			return slices.Insert(all, i+1, w)
		})
	}
	position := func(change func(*history.Watched)) doctor {
		return watch(quietWatcher, func(all []history.Watched) []history.Watched {
			change(&all[len(all)-1])
			return all
		})
	}
	for name, c := range map[string]struct {
		doctored doctor
		text     string
	}{
		"another event":   {differs(lease.Expired, 2, func(w *history.Watched) { w.Event = "released" }), " where w"},
		"another key":     {differs(lease.Expired, 2, func(w *history.Watched) { w.Key = "l" }), " where w"},
		"another owner":   {differs(lease.Acquired, 2, func(w *history.Watched) { w.Owner = "z" }), " where w"},
		"another epoch":   {differs(lease.Acquired, 3, func(w *history.Watched) { w.Epoch = 4 }), " where w"},
		"another end":     {differs(lease.Acquired, 2, func(w *history.Watched) { w.LeaseUntil++ }), " where w"},
		"another floor":   {differs(lease.Acquired, 2, func(w *history.Watched) { w.Floor = 0 }), " where w"},
		"another index":   {differs(lease.Released, 3, func(w *history.Watched) { w.Index = 18 }), " where w"},
		"another clock":   {differs(lease.Released, 3, func(w *history.Watched) { w.At++ }), " where w"},
		"the second less": {all(onlyWatched, watch(quietWatcher, dropped(lease.Released, 3))), "w2 nothing more up to"},
		"the first less":  {all(onlyWatched, watch(oneWatcher, dropped(lease.Released, 3))), "w1 nothing more up to"},
		"a renewal less":  {all(watch(oneWatcher, dropped(lease.Renewed, 1)), alsoAll, onlyWatched), " where w"},

		"a position's clock":      {position(func(w *history.Watched) { w.At++ }), "the clock was at"},
		"a position's clock back": {position(func(w *history.Watched) { w.Index, w.At = 19, at(3400*ms) }), "the clock was at"},
		"a listing's clock":       {all(onlyWatched, func(r *history.Run) { r.Watched[1].At++ }), "the clock was at"},
		"an event's clock":        {differs(lease.Released, 3, func(w *history.Watched) { w.At++ }), "the clock was at"},
		"the stored clock":        {func(r *history.Run) { r.Stored[6].At++ }, "the stored history"},

		"not listed":           {all(listedLate(), alsoAll), `was not listed "k" at index 12`},
		"listed otherwise":     {all(listedLate(wrongly(func(w *history.Watched) { w.LeaseUntil = at(1306 * ms) })), alsoAll), `was listed "k" at index 12`},
		"listed of the future": {all(listedLate(wrongly(func(w *history.Watched) { w.Floor = 1 })), alsoAll), `was listed "k" at index 12`},
		"listed from nowhere":  {all(listedLate(held, other), alsoAll), `was listed "l" at index 12`},

		"an end before the last renewal": {watch(bothWatches, altered(lease.Expired, 2, func(w *history.Watched) { w.LeaseUntil = at(1604 * ms) })), "though it was longer"},
		"twice":                          {again(lease.Renewed, 1, func(*history.Watched) {}), " twice"},
		"out of order by index":          {again(lease.Acquired, 2, func(w *history.Watched) { w.Index = 14 }), " out of order"},
		"out of order by clock":          {again(lease.Acquired, 2, func(w *history.Watched) { w.Index, w.At = 16, at(604*ms) }), " out of order"},
		"two clocks of an index":         {again(lease.Acquired, 2, func(w *history.Watched) { w.At = at(606 * ms) }), " out of order"},
		"an end after what made it":      {again(lease.Acquired, 3, func(w *history.Watched) { w.Event, w.Key = "expired", "l" }), "after what the entry itself did"},
		"ends out of order":              {again(lease.Expired, 2, func(w *history.Watched) { w.Key, w.LeaseUntil = "l", at(1604*ms) }), "out of the order of ends"},
		"an end yet to come":             {watch(oneWatcher, altered(lease.Expired, 2, func(w *history.Watched) { w.LeaseUntil = at(3006 * ms) })), "its end was yet to come"},
	} {
		run := goodRun()
		run.Beliefs, run.Writes = nil, nil
		c.doctored(&run)
		found := check.Judge(run, check.Options{PerKey: time.Second}).Check("watched")
		if !slices.ContainsFunc(found.Violations, func(v check.Violation) bool { return strings.Contains(v.Text, c.text) }) {
			t.Errorf("%s: none tells %q: %+v", name, c.text, found)
		}
	}
}

// A listing in the midst is what was told before it.
func TestAListingMayBeWhatWasTold(t *testing.T) {
	run := goodRun()
	listedLate(history.Watched{Mark: history.WatchListed, Key: "k", Owner: "a", Epoch: 1, LeaseUntil: at(1305 * ms)})(&run)
	alsoAll(&run)
	if v := check.Judge(run, check.Options{}); v.Status() != check.Pass {
		t.Error(v.Summary())
	}
}
