package leasetest

import (
	"time"

	"github.com/leasenode/leasenode/lease"
)

func renewChecks() []Check {
	return []Check{
		{"a renewal moves the end to ttl from now and keeps the epoch", renewalExtends},
		{"a renewal never shortens a lease", renewalNeverShortens},
		{"a renewal by another owner or for another epoch is refused", renewalOfAnother},
		{"a renewal at or after the end is refused", renewalAfterEnd},
		{"remaining is never above the ttl asked for, nor negative", remainingIsBounded},
	}
}

func renewalExtends(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	for _, length := range []time.Duration{ttl, time.Minute} {
		t.advance(ttl - time.Millisecond)
		renewed := t.done(a.forTTL(length).renew(1))
		t.shows(renewed, state{owner: "a", epoch: 1, left: length})
		t.changed(renewed)
		t.shows(a.read(), state{owner: "a", epoch: 1, left: length})
	}
	t.advance(time.Minute - time.Millisecond)
	t.held(b.acquire())
}

func renewalNeverShortens(t *trial) {
	a := t.claimant("a").forTTL(time.Minute)
	end := a.granted(1).Record.LeaseUntil.Millis()
	for _, length := range []time.Duration{lease.MinTTL, ttl, time.Minute} {
		renewed := t.done(a.forTTL(length).renew(1))
		equal(t, "end of the lease, in ms,", renewed.Record.LeaseUntil.Millis(), end)
		equal(t, "changed", renewed.Changed, false)
		equal(t, "remaining", renewed.Remaining, length)
	}
	t.shows(a.read(), state{owner: "a", epoch: 1, left: time.Minute})
}

func renewalOfAnother(t *trial) {
	a := t.claimant("a")
	t.lost(a.renew(1))
	a.granted(1)
	t.advance(ttl / 2)
	for _, other := range []string{"b", "A", "a ", " a", "aa", "\u0430"} {
		lost := t.lost(t.claimant(other).renew(1))
		equal(t, "holder named", lost.Record.Owner, "a")
	}
	t.lost(a.renew(2))
	t.lost(a.renew(lease.MaxEpoch))
	t.shows(a.read(), state{owner: "a", epoch: 1, left: ttl / 2})
}

func renewalAfterEnd(t *trial) {
	a := t.claimant("a")
	for _, late := range []time.Duration{0, time.Millisecond, time.Hour} {
		t.part(late.String(), func(t *trial) {
			a := t.claimant("a")
			a.granted(1)
			t.advance(ttl + late)
			lost := t.lost(a.renew(1))
			equal(t, "epoch named", lost.Record.Epoch, 1)
			equal(t, "remaining", lost.Remaining, 0)
			t.shows(a.read(), state{owner: "a", epoch: 1})
			a.granted(2)
		})
	}
	a.granted(1)
	t.done(a.release(1))
	t.lost(a.renew(1))
	a.granted(2)
}

func remainingIsBounded(t *trial) {
	a := t.claimant("a").attempt("one")
	bounded := func(answer lease.Answer, most time.Duration) {
		if answer.Remaining < 0 || answer.Remaining > most {
			t.failf("want remaining from 0 to %v, got %v", most, answer.Remaining)
		}
	}
	bounded(t.done(a.acquire()), ttl)
	bounded(t.done(a.forTTL(time.Hour).renew(1)), time.Hour)
	bounded(t.done(a.acquire()), ttl)
	bounded(t.done(a.forTTL(time.Second).renew(1)), time.Second)
	bounded(a.read(), time.Hour)
	bounded(t.done(a.forget(1)), time.Hour)
	t.advance(time.Hour - time.Millisecond)
	bounded(a.read(), time.Millisecond)
	bounded(t.done(a.acquire()), time.Millisecond)
	t.advance(time.Hour)
	bounded(a.read(), 0)
	bounded(t.done(a.release(1)), 0)
}

func releaseChecks() []Check {
	return []Check{
		{"a release ends the lease at once", releaseEnds},
		{"releasing one's own finished lease again changes nothing", releaseIsIdempotent},
		{"a release by another owner or for another epoch is refused", releaseOfAnother},
	}
}

func releaseEnds(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	t.advance(ttl / 4)
	released := t.done(a.release(1))
	t.shows(released, state{owner: "a", epoch: 1})
	equal(t, "end of the lease, in ms,", released.Record.LeaseUntil.Millis(), released.Now.Millis())
	t.changed(released)
	t.shows(a.read(), state{owner: "a", epoch: 1})
	b.granted(2)
}

func releaseIsIdempotent(t *trial) {
	released, expired := t.claimant("a").of(t.key("released")), t.claimant("a").of(t.key("expired"))
	released.granted(1)
	expired.granted(1)
	end := t.done(released.release(1)).Record.LeaseUntil
	t.advance(ttl)
	for range 2 {
		again := t.done(released.release(1))
		t.shows(again, state{owner: "a", epoch: 1})
		equal(t, "changed", again.Changed, false)
		equal(t, "end of the lease, in ms,", again.Record.LeaseUntil.Millis(), end.Millis())
		equal(t, "changed", t.done(expired.release(1)).Changed, false)
	}
	equal(t, "number of entries of the released", len(released.history()), 2)
	equal(t, "number of entries of the expired", len(expired.history()), 1)
}

func releaseOfAnother(t *trial) {
	a := t.claimant("a")
	never := t.lost(a.release(1))
	equal(t, "epoch of a key never granted", never.Record.Epoch, 0)
	a.granted(1)
	t.lost(t.claimant("b").release(1))
	t.lost(t.claimant("A").release(1))
	t.lost(a.release(2))
	t.shows(a.read(), state{owner: "a", epoch: 1, left: ttl})
	t.done(a.release(1))
	t.lost(t.claimant("b").release(1))
	a.granted(2)
	t.lost(a.release(1))
	t.shows(a.read(), state{owner: "a", epoch: 2, left: ttl})
}
