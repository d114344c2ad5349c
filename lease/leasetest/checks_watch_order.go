package leasetest

import (
	"fmt"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func orderChecks() []Check {
	return []Check{
		{"leases that have ended are told in the order of end and key, before what their entry did", tellsEndsFirst},
		{"what one entry did comes in one update", tellsEntriesWhole},
		{"events are what the history has, in its order", tellsHistory},
	}
}

func tellsEndsFirst(t *trial) {
	at := t.watch(lease.WatchRequest{}).begun()
	next := t.claimant("next").of(t.key("a")) // comes before all others if the order is that of keys alone
	for _, c := range []struct {
		key string
		ttl time.Duration
	}{{"z", 200}, {"c", 300}, {"x", 200}, {"b", 400}, {"y", 200}, {"d", 100}} {
		t.claimant("o").of(t.key(c.key)).forTTL(c.ttl * time.Millisecond).granted(1)
	}
	t.advance(400 * time.Millisecond)
	next.granted(1)
	t.last(t.key("k"))
	// Of all keys: somebody else's event may be in the entry that finds the ends.
	var ends []lease.Event
	for _, e := range t.watch(lease.WatchRequest{After: at}).events() {
		if strings.HasPrefix(e.Record.Key, t.keys) && (e.Kind == lease.Expired || e.Record.Owner == next.owner) {
			ends = append(ends, e)
		}
	}
	t.sequence("events", t.happened(ends), []string{
		"expired d o 1 @0", "expired x o 1 @0", "expired y o 1 @0", "expired z o 1 @0", "expired c o 1 @0", "expired b o 1 @0", "acquired a next 1 @0",
	})
	for i := 1; t.err == nil && i < len(ends)-1; i++ {
		equal(t, "entry of an end", ends[i].Index, ends[0].Index)
	}
}

func tellsEntriesWhole(t *trial) {
	w := t.watch(t.all())
	at := w.begun()
	var renewals []lease.RenewRequest
	for _, name := range []string{"c", "a", "b"} {
		c := t.claimant("o").of(t.key(name))
		c.granted(1)
		renewals = append(renewals, c.forTTL(ttl+time.Second).renewal(1))
	}
	t.batch(renewals...)
	t.advance(ttl + time.Second)
	t.last(t.key("k"))
	for name, w := range map[string]*watching{"as it happens": w, "afterwards": t.watch(lease.WatchRequest{Prefix: t.keys, Renewals: true, After: at})} {
		entries := map[uint64]int{}
		most := 0
		for _, u := range w.updates() {
			told := map[uint64]int{}
			for _, e := range u.Events {
				told[e.Index]++
				most = max(most, told[e.Index])
			}
			for index, n := range told {
				if entries[index] > 0 {
					t.failf("%s: want the events of entry %d in one update, got %d and then %d", name, index, entries[index], n)
				}
				entries[index] = n
			}
		}
		equal(t, name+": most events of one entry", most, len(renewals))
	}
}

func tellsHistory(t *trial) {
	w := t.watch(t.all())
	w.begun()
	for i := range 12 {
		c := t.claimant(fmt.Sprintf("o%d", i)).of(t.key(fmt.Sprint(i % 3)))
		epoch := uint64(i/3 + 1)
		c.granted(epoch)
		if i%2 == 0 {
			t.done(c.forTTL(ttl + time.Second).renew(epoch))
		}
		if i%4 == 1 {
			t.done(c.forget(epoch))
		}
		if i%3 == 2 {
			t.advance(ttl + time.Second)
		} else if i%6 < 2 {
			t.done(c.release(epoch))
		}
	}
	t.last(t.key("k"))
	var got, want []string
	for _, e := range w.events() {
		if e.Kind != lease.Expired {
			got = append(got, fmt.Sprintf("%d %s %s %s %d @%d", e.Index, e.Kind, e.Record.Key, e.Record.Owner, e.Record.Epoch, e.At.Millis()))
		}
	}
	for _, e := range t.history(lease.HistoryRequest{PageSize: lease.MaxPageSize}) {
		if e.Owner != theLast {
			want = append(want, fmt.Sprintf("%d %s %s %s %d @%d", e.Index, lease.EventOf(e.Op), e.Key, e.Owner, e.Epoch, e.At.Millis()))
		}
	}
	t.sequence("events", got, want)
}
