package leasetest

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func listingChecks() []Check {
	return []Check{
		{"a watch can begin with a listing of the state at a position", listsTheState},
		{"what follows a listing makes of it the state that follows", followsTheListing},
		{"a listing of what is held leaves out what nobody holds", listsWhatIsHeld},
		{"a listing of one key has only that, and nothing if it was never granted", listsOneKey},
		{"with a position, nothing is listed while what comes after it is kept", listsNothingIfItIsKept},
	}
}

// state reads what is there, page by page.
func (t *trial) listed(selection lease.Selection) listing {
	l := listing{records: map[string]lease.Record{}}
	req := lease.ListRequest{Prefix: t.keys, Selection: selection, PageSize: lease.MaxPageSize}
	for {
		page, err := do(t, fmt.Sprintf("list %.20q", req.PageToken), func() (lease.ListPage, error) { return t.subject.Store.List(t.ctx, req) })
		if err != nil {
			t.failf("want a page, got %w", err)
			return l
		}
		for _, answer := range page.Answers {
			l.records[answer.Record.Key] = answer.Record
		}
		l.now = page.Now
		if req.PageToken = page.NextPageToken; req.PageToken == "" {
			return l
		}
	}
}

// sameRecords expects got to have the records of want.
func (t *trial) sameRecords(got, want listing) {
	for key, r := range want.records {
		t.sameRecord("the listed record", got.records[key], r)
	}
	equal(t, "number of listed records", len(got.records), len(want.records))
}

// life leaves keys of all kinds: held, released, ended, renewed and forgotten.
func (t *trial) life() {
	for i, name := range []string{"a", "a/b", "ab", "b", "é"} {
		c := t.claimant("o").of(t.key(name)).with(map[string]string{"n": fmt.Sprint(i)})
		c.granted(1)
		switch name {
		case "a/b":
			t.done(c.release(1))
			t.claimant("p").of(c.key).granted(2)
		case "ab":
			t.done(c.forget(1))
			t.done(c.release(1))
		case "b":
			t.done(c.forTTL(ttl + time.Second).renew(1))
		}
	}
	t.claimant("o").of(t.key("ended")).forTTL(time.Second).granted(1)
	t.advance(2 * time.Second)
}

func listsTheState(t *trial) {
	t.life()
	w := t.watch(lease.WatchRequest{Prefix: t.keys, Sync: true})
	got := w.listing()
	want := t.listed(lease.AllRecords)
	equal(t, "number of records", len(want.records), 6)
	t.sameRecords(got, want)
	equal(t, "the clock of the listing, in ms,", got.now.Millis(), want.now.Millis())
	t.last(t.key("k"))
	t.sequence("events", t.happened(w.events()), nil)
	t.sequence("events after the position of the listing", t.happened(t.watch(lease.WatchRequest{Prefix: t.keys, After: got.at}).events()), nil)
}

func followsTheListing(t *trial) {
	const many = 120
	for i := range many {
		t.claimant("o").of(t.key(fmt.Sprint(i))).granted(1)
	}
	w := t.watch(lease.WatchRequest{Prefix: t.keys, Sync: true, Renewals: true})
	l := w.listing()
	equal(t, "number of listed records", len(l.records), many)
	t.life()
	for _, i := range []int{0, 7, many - 2} {
		renews, again := t.claimant("o").of(t.key(fmt.Sprint(i))), t.claimant("o").of(t.key(fmt.Sprint(i+1)))
		t.done(renews.renew(1))
		t.done(again.release(1))
		again.granted(2)
	}
	want := t.listed(lease.AllRecords)
	t.last(t.key("k"))
	for _, e := range w.events() {
		l.records[e.Record.Key] = e.Record
	}
	t.sameRecords(l, want)
}

func listsWhatIsHeld(t *trial) {
	t.life()
	w := t.watch(lease.WatchRequest{Prefix: t.keys, Sync: true, Selection: lease.HeldOnly})
	want := t.listed(lease.HeldOnly)
	equal(t, "number of records", len(want.records), 4)
	t.sameRecords(w.listing(), want)
	ab := t.claimant("p").of(t.key("ab"))
	t.done(ab.acquire())
	t.done(ab.release(2))
	t.last(t.key("k"))
	t.sequence("events", t.happened(w.events()), []string{"acquired ab p 2 @0", "released ab p 2 @0"})
}

func listsOneKey(t *trial) {
	t.life()
	for name, n := range map[string]int{"a": 1, "a/": 0, "ab": 1} {
		key := t.key(name)
		got := t.watch(lease.WatchRequest{Key: key, Sync: true}).listing()
		equal(t, fmt.Sprintf("number of records of %q", name), len(got.records), n)
		if n > 0 {
			t.sameRecord("the listed record", got.records[key], t.claimant("o").of(key).read().Record)
		}
	}
}

func listsNothingIfItIsKept(t *trial) {
	a := t.claimant("a")
	a.granted(1)
	at := t.watch(lease.WatchRequest{Key: a.key, Sync: true}).listing().at
	t.done(a.release(1))
	t.last(a.key)
	w := t.watch(lease.WatchRequest{Key: a.key, Sync: true, After: at})
	var got []lease.Event
	for _, u := range w.updates() {
		if u.Reset || u.Synced {
			t.failf("want no listing, got %+v", u)
		}
		got = append(got, u.Events...)
	}
	t.sequence("events", t.happened(got), []string{"released k a 1 @0"})
}
