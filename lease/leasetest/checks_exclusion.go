package leasetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func exclusionChecks() []Check {
	return []Check{
		{"an unexpired lease excludes everyone else", excludesOthers},
		{"an unexpired lease excludes its own holder", excludesItsHolder},
		{"a lease is over at its end instant, not a millisecond before", overAtItsEnd},
		{"of many who ask at once, one is granted", oneOfMany},
		{"keys are independent", keysAreIndependent},
	}
}

func excludesOthers(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	a.granted(1)
	left := ttl
	for _, d := range []time.Duration{time.Millisecond, ttl / 2, ttl/2 - 2*time.Millisecond} {
		t.advance(d)
		left -= d
		held := t.held(b.acquire())
		t.shows(lease.Answer{Record: held.Record, Now: a.read().Now, Remaining: held.Remaining}, state{owner: "a", epoch: 1, left: left})
		t.shows(a.read(), state{owner: "a", epoch: 1, left: left})
	}
	t.done(a.renew(1))
	t.held(b.acquire())
}

func excludesItsHolder(t *trial) {
	a := t.claimant("a")
	a.granted(1)
	// A client library may fill in ids where there are none: these are attempts of
	// their own all the same.
	for _, again := range []claimant{a, a.attempt("one"), a.attempt("two")} {
		held := t.held(again.acquire())
		equal(t, "holder", held.Record.Owner, "a")
		equal(t, "epoch", held.Record.Epoch, 1)
	}
	t.shows(a.read(), state{owner: "a", epoch: 1, left: ttl})
}

func overAtItsEnd(t *trial) {
	a, b := t.claimant("a"), t.claimant("b")
	for _, length := range []time.Duration{lease.MinTTL, 12345 * time.Millisecond} {
		t.part(length.String(), func(t *trial) {
			a, b := t.claimant("a").forTTL(length), t.claimant("b")
			a.granted(1)
			t.advance(length - time.Millisecond)
			t.shows(a.read(), state{owner: "a", epoch: 1, left: time.Millisecond})
			t.held(b.acquire())
			t.advance(time.Millisecond)
			t.shows(a.read(), state{owner: "a", epoch: 1})
			b.granted(2)
		})
	}
	a.granted(1)
	t.advance(ttl / 2)
	t.done(a.renew(1))
	t.advance(ttl - time.Millisecond)
	t.held(b.acquire())
	t.advance(time.Millisecond)
	b.granted(2)
}

func oneOfMany(t *trial) {
	const contenders = 8
	answers, errs := make([]lease.Answer, contenders), make([]error, contenders)
	var group sync.WaitGroup
	for i := range contenders {
		group.Go(func() {
			req := lease.AcquireRequest{Key: t.key("k"), Owner: fmt.Sprintf("o%d", i), TTL: ttl}
			answers[i], errs[i] = t.subject.Store.Acquire(t.ctx, req)
		})
	}
	group.Wait()
	t.steps = append(t.steps, fmt.Sprintf("%d acquires at once", contenders))
	holder := t.claimant("any").read().Record.Owner
	granted := 0
	for i := range contenders {
		var held *lease.HeldError
		switch {
		case errs[i] == nil:
			granted++
			t.shows(answers[i], state{owner: holder, epoch: 1, left: ttl})
		case errors.As(errs[i], &held):
			equal(t, "holder named to the others", held.Record.Owner, holder)
		default:
			t.failf("want it granted or held, got %w", errs[i])
		}
	}
	equal(t, "number of grants", granted, 1)
}

func keysAreIndependent(t *trial) {
	names := []string{"a", "a/", "a/b", "A", "ab", "a ", "é", "e\u0301"}
	for _, name := range names {
		t.claimant("o").of(t.key(name)).granted(1)
	}
	t.claimant("c").of(t.key("x/ab")).granted(1)
	t.claimant("bc").of(t.key("x/a")).granted(1)
	t.done(t.claimant("o").of(t.key("a/")).release(1))
	t.claimant("other").of(t.key("a/")).granted(2)
	for _, name := range names {
		want := state{owner: "o", epoch: 1, left: ttl}
		if name == "a/" {
			want = state{owner: "other", epoch: 2, left: ttl}
		}
		t.shows(t.claimant("").of(t.key(name)).read(), want)
	}
}
