package report

import (
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// storeBars returns who held each key by what the store answered and kept: from the
// grant to the latest end that was shown, a release, or the next grant.
func storeBars(run history.Run, owner func(string) int) map[string][]bar {
	clock := clockOf(run.Ops)
	keys := map[string]map[uint64]*tenure{}
	of := func(key string, epoch uint64) *tenure {
		if keys[key] == nil {
			keys[key] = map[uint64]*tenure{}
		}
		if keys[key][epoch] == nil {
			keys[key][epoch] = &tenure{}
		}
		return keys[key][epoch]
	}
	for _, op := range run.Ops {
		if op.Record.Epoch > 0 && op.Kind != history.GetStale {
			of(op.Key, op.Record.Epoch).show(op)
		}
	}
	for _, e := range run.Stored {
		of(e.Key, e.Epoch).keep(e)
	}
	bars := map[string][]bar{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		bars[key] = barsOf(keys[key], clock, owner)
	}
	return bars
}

func barsOf(tenures map[uint64]*tenure, clock clock, owner func(string) int) []bar {
	var bars []bar
	for _, epoch := range slices.Sorted(maps.Keys(tenures)) {
		t := tenures[epoch]
		b := bar{Owner: owner(t.owner), Epoch: epoch, From: millis(t.seen), Until: millis(clock.moment(t.end()))}
		if t.granted != 0 {
			b.From = millis(clock.moment(t.granted))
		}
		if n := len(bars); n > 0 && bars[n-1].Until > b.From {
			bars[n-1].Until = max(bars[n-1].From, b.From)
		}
		b.Until = max(b.From, b.Until)
		bars = append(bars, b)
	}
	return bars
}

// tenure is what is known of one epoch of a key.
type tenure struct {
	owner    string
	seen     time.Duration // on the harness's clock, when an answer showed it first
	granted  lease.Instant // 0 if not known
	released lease.Instant // 0 if not known
	until    lease.Instant // the latest that was shown
}

func (t *tenure) show(op history.Op) {
	if t.owner == "" || op.Return < t.seen {
		t.seen = op.Return
	}
	t.owner = op.Record.Owner
	t.until = max(t.until, op.Record.LeaseUntil)
	switch {
	case op.Outcome != history.OK || !op.Changed:
	case op.Kind == history.Acquire:
		t.granted = op.Now
	case op.Kind == history.Release:
		t.released = op.Now
	}
}

func (t *tenure) keep(e lease.Entry) {
	t.owner = e.Owner
	t.until = max(t.until, e.At)
	switch e.Op {
	case lease.OpAcquire:
		t.granted = e.At
	case lease.OpRelease:
		t.released = e.At
	}
}

func (t *tenure) end() lease.Instant {
	if t.released != 0 {
		return t.released
	}
	return t.until
}

// clock places instants of the cluster clock on the harness's: where the last answer
// before them was, and as much later.
type clock []sample

type sample struct {
	now    lease.Instant
	moment time.Duration
}

func clockOf(ops []history.Op) clock {
	var c clock
	for _, op := range ops {
		if op.Outcome == history.OK && op.Kind != history.GetStale && op.Now != 0 {
			c = append(c, sample{op.Now, op.Return})
		}
	}
	slices.SortFunc(c, func(a, b sample) int {
		if a.now != b.now {
			return int(min(max(a.now-b.now, -1), 1))
		}
		return int(a.moment - b.moment)
	})
	return c
}

func (c clock) moment(now lease.Instant) time.Duration {
	if len(c) == 0 {
		return 0
	}
	i := sort.Search(len(c), func(i int) bool { return c[i].now > now })
	if i > 0 && c[i-1].now == now {
		i = sort.Search(len(c), func(i int) bool { return c[i].now >= now }) + 1
	}
	before := c[max(i-1, 0)]
	moment := before.moment + now.Sub(before.now)
	if i < len(c) {
		moment = min(moment, max(c[i].moment, before.moment)) // the clock may have lost time between them
	}
	return max(0, moment)
}
