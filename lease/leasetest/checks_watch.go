package leasetest

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func eventChecks() []Check {
	return []Check{
		{"a watch tells what happens to keys, each with its record, entry and clock", tellsWhatHappens},
		{"what was refused or changed nothing is not told", tellsChangesOnly},
		{"renewals are told only if they are asked for", tellsRenewalsIfAsked},
		{"a watch is of one key, or of a prefix of bytes", watchesByBytes},
		{"a lease that was not released expires once, at its end", expiresOnce},
	}
}

// all is a watch of all keys of the run.
func (t *trial) all() lease.WatchRequest {
	return lease.WatchRequest{Prefix: t.keys, Renewals: true}
}

func tellsWhatHappens(t *trial) {
	w := t.watch(t.all())
	w.begun()
	a, b := t.claimant("a").with(map[string]string{"addr": "h:1", "v": "é"}), t.claimant("b")
	var answers []lease.Answer
	did := func(answer lease.Answer) { answers = append(answers, answer) }
	did(a.granted(1))
	t.advance(time.Second)
	did(t.done(a.renew(1)))
	did(t.done(a.forget(1)))
	t.advance(time.Second)
	did(t.done(a.release(1)))
	granted := b.granted(2)
	did(granted)
	t.advance(ttl)
	granted.Now = granted.Record.LeaseUntil
	did(granted) // as it was, and then over
	t.last(a.key)
	got := w.events()
	t.sequence("events", t.happened(got), []string{
		"acquired k a 1 @0", "renewed k a 1 @1000", "forgotten k a 1 @1000", "released k a 1 @2000", "acquired k b 2 @2000", "expired k b 2 @12000",
	})
	if t.err != nil {
		return
	}
	for i, e := range got {
		t.sameRecord(fmt.Sprintf("the record of event %d", i+1), e.Record, answers[i].Record)
		equal(t, fmt.Sprintf("the clock of event %d, in ms,", i+1), e.At.Millis(), answers[i].Now.Millis())
	}
}

func tellsChangesOnly(t *trial) {
	w := t.watch(t.all())
	w.begun()
	a := t.changesBesideRefusals()
	t.last(a.key)
	t.sequence("events", t.happened(w.events()), []string{"acquired k a 1 @0", "forgotten k a 1 @0", "released k a 1 @0"})
}

func tellsRenewalsIfAsked(t *trial) {
	every, few := t.watch(lease.WatchRequest{Key: t.key("k"), Renewals: true}), t.watch(lease.WatchRequest{Key: t.key("k")})
	every.begun()
	few.begun()
	a := t.claimant("a")
	a.granted(1)
	t.advance(time.Second)
	t.done(a.renew(1))
	t.batch(a.forTTL(ttl + time.Second).renewal(1))
	t.done(a.release(1))
	t.last(a.key)
	t.sequence("events", t.happened(every.events()), []string{"acquired k a 1 @0", "renewed k a 1 @1000", "renewed k a 1 @1000", "released k a 1 @1000"})
	t.sequence("events without renewals", t.happened(few.events()), []string{"acquired k a 1 @0", "released k a 1 @1000"})
}

func watchesByBytes(t *trial) {
	e := "é"
	at := t.watch(lease.WatchRequest{Prefix: t.keys}).begun()
	names := []string{"b", "ab", "a/b", "a/", "a", "A", "è", "é"}
	for _, name := range names {
		t.claimant("o").of(t.key(name)).granted(1)
	}
	for _, name := range []string{"a", "a/", e, "c"} {
		c := t.claimant("o").of(t.key(name))
		if name != "c" {
			t.done(c.release(1))
		}
		t.last(c.key)
	}
	for _, c := range []struct {
		req  lease.WatchRequest
		want []string
	}{
		{lease.WatchRequest{Prefix: t.keys}, names},
		{lease.WatchRequest{Prefix: t.key("a")}, []string{"ab", "a/b", "a/", "a"}},
		{lease.WatchRequest{Prefix: t.key("a/")}, []string{"a/b", "a/"}},
		{lease.WatchRequest{Prefix: t.key(e[:1])}, []string{"è", "é"}},
		{lease.WatchRequest{Key: t.key("a")}, []string{"a"}},
		{lease.WatchRequest{Key: t.key("a/")}, []string{"a/"}},
		{lease.WatchRequest{Prefix: t.key("c")}, nil},
	} {
		c.req.After = at
		var got []string
		for _, e := range t.watch(c.req).events() {
			if e.Kind == lease.Acquired {
				got = append(got, claimant{t: t, key: e.Record.Key}.shortKey())
			}
		}
		t.sequence(fmt.Sprintf("keys of %+v", c.req), got, c.want)
	}
}

func expiresOnce(t *trial) {
	w := t.watch(lease.WatchRequest{Prefix: t.keys})
	w.begun()
	kept, renewed, released := t.claimant("a").of(t.key("kept")), t.claimant("b").of(t.key("renewed")), t.claimant("c").of(t.key("released"))
	kept.granted(1)
	renewed.granted(1)
	released.granted(1)
	t.advance(time.Second)
	t.done(renewed.renew(1))
	t.done(released.release(1))
	t.advance(ttl - time.Second - time.Millisecond)
	t.done(renewed.forget(1))
	t.advance(time.Millisecond)
	t.done(kept.release(1)) // it is over, and stays so
	t.advance(time.Second)
	kept.granted(2)
	t.done(kept.release(2))
	t.advance(ttl)
	t.last(kept.key)
	t.sequence("events", t.happened(w.events()), []string{
		"acquired kept a 1 @0", "acquired renewed b 1 @0", "acquired released c 1 @0", "released released c 1 @1000", "forgotten renewed b 1 @9999",
		"expired kept a 1 @10000", "expired renewed b 1 @11000", "acquired kept a 2 @11000", "released kept a 2 @11000",
	})
}
