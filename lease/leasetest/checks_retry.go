package leasetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func retryChecks() []Check {
	return []Check{
		{"a repeated attempt is answered with its own grant while that lasts", retryWhileHeld},
		{"a repeated attempt is lost once its grant has ended", retryAfterEnd},
		{"a repeated attempt is lost while and after others held the key", retryAfterOthers},
		{"an attempt is remembered for as long as its grant is in the history", retryIsRemembered},
		{"a request id means nothing for another owner or key", requestIDIsTheOwners},
		{"a call whose context has ended does nothing", endedContextDoesNothing},
	}
}

func retryWhileHeld(t *trial) {
	a := t.claimant("a").attempt("one")
	a.granted(1)
	again := func(left time.Duration) {
		repeated := t.done(a.acquire())
		equal(t, "changed", repeated.Changed, false)
		equal(t, "remaining", repeated.Remaining, min(left, ttl))
		repeated.Remaining = left
		t.shows(repeated, state{owner: "a", epoch: 1, left: left})
		t.shows(a.read(), state{owner: "a", epoch: 1, left: left})
	}
	again(ttl)
	t.advance(ttl - time.Millisecond)
	again(time.Millisecond)
	t.done(a.forTTL(time.Minute).renew(1))
	again(time.Minute)
	t.shows(t.done(a.forTTL(time.Hour).acquire()), state{owner: "a", epoch: 1, left: time.Minute})
	equal(t, "number of entries", len(a.history()), 2)
}

func retryAfterEnd(t *trial) {
	for how, end := range map[string]func(*trial, claimant){
		"expired":  func(t *trial, _ claimant) { t.advance(ttl) },
		"released": func(t *trial, a claimant) { t.done(a.release(1)) },
	} {
		t.part(how, func(t *trial) {
			a := t.claimant("a").attempt("one")
			a.granted(1)
			end(t, a)
			for range 2 {
				lost := t.lost(a.acquire())
				equal(t, "epoch named", lost.Record.Epoch, 1)
				equal(t, "remaining", lost.Remaining, 0)
			}
			t.shows(a.read(), state{owner: "a", epoch: 1})
			a.attempt("two").granted(2)
			t.lost(a.acquire())
			// A later grant of the same owner, asked for without an id, is neither's.
			t.advance(ttl)
			t.claimant("a").granted(3)
			t.lost(a.acquire())
			t.lost(a.attempt("two").acquire())
		})
	}
}

func retryAfterOthers(t *trial) {
	a, b := t.claimant("a").attempt("one"), t.claimant("b").attempt("two")
	a.granted(1)
	t.done(a.release(1))
	b.granted(2)
	t.lost(a.acquire())
	t.shows(b.read(), state{owner: "b", epoch: 2, left: ttl})
	t.advance(ttl)
	t.lost(a.acquire())
	t.lost(b.acquire())
	t.shows(b.read(), state{owner: "b", epoch: 2})
	a.attempt("three").granted(3)
	t.lost(a.acquire())
	t.lost(b.acquire())
	equal(t, "epoch at the end", a.read().Record.Epoch, 3)
}

func retryIsRemembered(t *trial) {
	a, b := t.claimant("a").attempt("one"), t.claimant("b")
	a.granted(1)
	for epoch := uint64(2); epoch <= uint64(t.subject.Kept.Grants); epoch++ {
		t.advance(ttl)
		t.lost(a.acquire())
		b.attempt(fmt.Sprint("b", epoch)).granted(epoch)
	}
	t.advance(ttl)
	t.lost(a.acquire())
}

func requestIDIsTheOwners(t *trial) {
	a, b := t.claimant("a").attempt("secret-one"), t.claimant("b").attempt("secret-one")
	a.granted(1)
	held := t.held(b.acquire())
	if strings.Contains(held.Error(), "secret-one") {
		t.failf("want no request id in a refusal, got %w", &held)
	}
	t.held(t.claimant("A").attempt("secret-one").acquire())
	a.of(t.key("other")).granted(1)
	t.advance(ttl)
	b.granted(2)
	lost := t.lost(a.acquire())
	if strings.Contains(lost.Error(), "secret-one") {
		t.failf("want no request id in a refusal, got %w", &lost)
	}
	equal(t, "changed", t.done(b.acquire()).Changed, false)
}

func endedContextDoesNothing(t *trial) {
	a := t.claimant("a")
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	_, err := do(t, "acquire with an ended context", func() (lease.Answer, error) {
		return t.subject.Store.Acquire(ctx, lease.AcquireRequest{Key: a.key, Owner: a.owner, TTL: ttl})
	})
	if !errors.Is(err, lease.ErrUnavailable) && !errors.Is(err, lease.ErrOutcomeUnknown) {
		t.failf("want it not done or not known, got %w", orDone(err))
	}
	equal(t, "epoch", a.read().Record.Epoch, 0)
}

func attributeChecks() []Check {
	return []Check{
		{"attributes belong to the grant and are replaced by the next", attributesOfTheGrant},
		{"answers are copies", answersAreCopies},
	}
}

func attributesOfTheGrant(t *trial) {
	first := map[string]string{"addr": "10.0.0.1:80", "version": "1", "empty": "", "nämé": "😀 value"}
	a, b := t.claimant("a").with(first), t.claimant("b").with(map[string]string{"version": "2"})
	t.attributes(a.granted(1), first)
	t.attributes(a.read(), first)
	t.attributes(t.done(a.with(nil).renew(1)), first)
	t.attributes(t.done(a.forget(1)), first)
	t.attributes(lease.Answer{Record: t.held(b.acquire()).Record}, first)
	t.attributes(t.done(a.release(1)), first)
	t.attributes(b.granted(2), b.attributes)
	t.attributes(b.read(), b.attributes)
	t.attributes(lease.Answer{Record: t.lost(a.renew(1)).Record}, b.attributes)
	t.done(b.release(2))
	t.attributes(a.with(nil).granted(3), nil)
	t.attributes(a.read(), nil)
}

// attributes expects an answer to have these attributes.
func (t *trial) attributes(answer lease.Answer, want map[string]string) {
	if !maps.Equal(answer.Record.Attributes, want) {
		t.failf("want attributes %q, got %q", want, answer.Record.Attributes)
	}
}

func answersAreCopies(t *trial) {
	want := map[string]string{"n": "v"}
	given := maps.Clone(want)
	a := t.claimant("a").with(given)
	answers := []lease.Answer{a.granted(1), a.read(), t.done(a.renew(1)), {Record: t.held(a.acquire()).Record}}
	given["n"] = "changed by the caller"
	for _, answer := range answers {
		for name := range answer.Record.Attributes {
			answer.Record.Attributes[name] = "changed by a reader"
		}
	}
	t.attributes(a.read(), want)
}
