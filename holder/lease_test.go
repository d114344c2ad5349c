package holder_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestHeldUntilTheDeadlineAndNotAtIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		want(t, "epoch", l.Epoch(), 1)
		want(t, "remaining", l.Remaining(), window)
		w.advance(window - 1)
		want(t, "a nanosecond before", fence(l.Check()), "<nil>")
		want(t, "held", l.Held(), true)
		want(t, "remaining", l.Remaining(), 1)
		w.advance(1)
		want(t, "at the deadline", fence(l.Check()), "lease_expired_locally, expired")
		want(t, "held", l.Held(), false)
		want(t, "remaining", l.Remaining(), 0)
		if w.record().Remaining <= 0 {
			t.Error("the store has ended the lease: the holder did not stop before")
		}
	})
}

func TestARenewalKeepsTheEpochAndCountsFromItsSending(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		w.advance(3 * time.Second)
		succeed(t, "renew", l.Renew(t.Context()))
		want(t, "epoch", l.Epoch(), 1)
		want(t, "remaining", l.Remaining(), window)
		want(t, "remaining at the store", w.record().Remaining, ttl)
	})
}

func TestAnOutageEndsNothingBeforeTheDeadlineAndARenewalAfterItResumes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		first := l.Context()
		w.advance(5 * time.Second)
		w.faulty.Cut()
		wantCode(t, "renew in the outage", l.Renew(t.Context()), lease.CodeUnavailable)
		want(t, "held in the outage", l.Held(), true)
		w.advance(3500 * time.Millisecond)
		want(t, "after the deadline", fence(l.Check()), "lease_expired_locally, unreachable")
		want(t, "cause of the context", fence(context.Cause(first)), "lease_expired_locally, unreachable")
		w.faulty.Heal()
		succeed(t, "renew before the store's end", l.Renew(t.Context()))
		want(t, "resumed", fence(l.Check()), "<nil>")
		want(t, "epoch", l.Epoch(), 1)
		if first.Err() == nil || l.Context().Err() != nil || l.Context() == first {
			t.Error("the context that was cancelled has to stay so, and a new one to be there")
		}
	})
}

func TestARenewalAfterTheStoresEndIsRefusedAndLostIsFinal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		w.faulty.Cut()
		w.advance(ttl + 500*time.Millisecond)
		w.faulty.Heal()
		wantCode(t, "renew", l.Renew(t.Context()), lease.CodeLost)
		want(t, "check", fence(l.Check()), "lease_lost, expired")
		calls := w.faulty.Calls(leasetest.Renew)
		want(t, "renew again", fence(l.Renew(t.Context())), "lease_lost, expired")
		want(t, "forget", fence(l.Forget(t.Context())), "lease_lost, expired")
		succeed(t, "release: there is nothing to give back", l.Release(t.Context()))
		want(t, "check after release", fence(l.Check()), "lease_lost, expired")
		want(t, "requests of a lost lease", w.faulty.Calls(leasetest.Renew)-calls+w.faulty.Calls(leasetest.Release), 0)
	})
}

func TestTakeoverAfterExpiry(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.hold("r1", w.replica())
		w.advance(ttl + 1)
		b := w.hold("r2", w.replica())
		want(t, "epoch of the next", b.Epoch(), 2)
		want(t, "the former", fence(a.Check()), "lease_expired_locally, expired")
		wantCode(t, "its renewal", a.Renew(t.Context()), lease.CodeLost)
		want(t, "the former", fence(a.Check()), "lease_lost, superseded")
		succeed(t, "the next", b.Check())
		_, err := w.holder("r3", w.replica()).Acquire(t.Context(), aKey)
		held, ok := errors.AsType[*lease.HeldError](err)
		if !ok || held.Record.Owner != "r2" || held.Record.Epoch != 2 {
			t.Errorf("a third: %v", err)
		}
	})
}

func TestAFrozenClockSeesNoTakeoverButTheStoreRefuses(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		frozen := leasetest.NewManualClock(time.Now())
		a := w.hold("r1", frozen)
		w.advance(ttl + 1)
		want(t, "epoch of the next", w.hold("r2", w.replica()).Epoch(), 2)
		want(t, "the frozen one passes its own check", a.Held(), true)
		wantCode(t, "its renewal", a.Renew(t.Context()), lease.CodeLost)
		want(t, "after that", fence(a.Check()), "lease_lost, superseded")
	})
}

func TestReleaseStopsFirstAndIsIdempotent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.hold("r1", w.replica())
		work := a.Context()
		succeed(t, "release", a.Release(t.Context()))
		want(t, "check", fence(a.Check()), "lease_released, released")
		want(t, "context", fence(context.Cause(work)), "lease_released, released")
		want(t, "a later context", fence(context.Cause(a.Context())), "lease_released, released")
		b := w.hold("r2", w.replica())
		want(t, "epoch of the next, at once", b.Epoch(), 2)
		succeed(t, "release again", a.Release(t.Context()))
		want(t, "renew", fence(a.Renew(t.Context())), "lease_released, released")
		succeed(t, "the next", b.Check())
		want(t, "history", history(t, w.memory, aKey), "acquire:1 release:1 acquire:2")
	})
}

func TestReleaseInAnOutageStopsAndCanBeRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var changes notes
		a := acquire(t, w.holder("r1", w.replica(), changes.states), aKey)
		w.faulty.Cut()
		wantCode(t, "release", a.Release(t.Context()), lease.CodeUnavailable)
		want(t, "check", fence(a.Check()), "lease_released, released")
		w.faulty.Heal()
		want(t, "renew", fence(a.Renew(t.Context())), "lease_released, released")
		want(t, "forget", fence(a.Forget(t.Context())), "lease_released, released")
		want(t, "requests of that", w.faulty.Calls(leasetest.Renew)+w.faulty.Calls(leasetest.Forget), 0)
		_, err := w.holder("r2", w.replica()).Acquire(t.Context(), aKey)
		wantCode(t, "the next", err, lease.CodeHeld)
		succeed(t, "release again", a.Release(t.Context()))
		want(t, "epoch of the next", w.hold("r2", w.replica()).Epoch(), 2)
		calls := w.faulty.Calls(leasetest.Release)
		succeed(t, "release once more", a.Release(t.Context()))
		want(t, "requests of that", w.faulty.Calls(leasetest.Release)-calls, 0)
		synctest.Wait()
		want(t, "changes", changes.String(), "held; released")
	})
}

func TestWithoutARepeatedReleaseTheNextWaitsOutTheLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.hold("r1", w.replica())
		w.faulty.Cut()
		wantCode(t, "release", a.Release(t.Context()), lease.CodeUnavailable)
		w.faulty.Heal()
		w.advance(ttl)
		want(t, "epoch of the next", w.hold("r2", w.replica()).Epoch(), 2)
		succeed(t, "a release that comes too late finds it over", a.Release(t.Context()))
		want(t, "history", history(t, w.memory, aKey), "acquire:1 acquire:2")
	})
}

func TestAGrantWhoseAnswerAteTheWindowIsHandedBack(t *testing.T) {
	for _, late := range []time.Duration{window, ttl, ttl + time.Second} {
		inWorld(t, func(t *testing.T, w *world) {
			slow := w.replica()
			w.faulty.AfterAcquire(func(lease.Answer) { slow.Advance(late) })
			var changes notes
			h := w.holder("r1", slow, changes.states)
			_, err := h.Acquire(t.Context(), aKey)
			wantCode(t, "acquire", err, lease.CodeLost)
			synctest.Wait()
			want(t, "changes of a lease that never was", changes.String(), "")
			want(t, "history", history(t, w.memory, aKey), "acquire:1 release:1")
			want(t, "leases", h.Stats().Leases, 0)
			w.faulty.AfterAcquire(nil)
			want(t, "epoch of the next, at once", w.hold("r2", w.replica()).Epoch(), 2)
		})
	}
}

func TestAGrantWithTimeLeftIsKept(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		slow := w.replica()
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{Err: lease.ErrUnavailable}) // else one may come first
		w.faulty.AfterAcquire(func(lease.Answer) { slow.Advance(window - 1) })
		want(t, "remaining", w.hold("r1", slow).Remaining(), 1)
	})
}

func TestForgetNeedsAHeldLeaseAndRaisesTheFloor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		want(t, "floor before", l.ForgottenAtEpoch(), 0)
		succeed(t, "forget", l.Forget(t.Context()))
		want(t, "floor", l.ForgottenAtEpoch(), 1)
		want(t, "floor at the store", w.record().Record.ForgottenAtEpoch, 1)
		want(t, "remaining: it extends nothing", l.Remaining(), window)
		w.advance(window)
		calls := w.faulty.Calls(leasetest.Forget)
		want(t, "a fenced holder", fence(l.Forget(t.Context())), "lease_expired_locally, expired")
		want(t, "its requests", w.faulty.Calls(leasetest.Forget)-calls, 0)
		w.advance(margin + 1)
		next := w.hold("r2", w.replica())
		want(t, "epoch of the next", next.Epoch(), 2)
		want(t, "the floor it gets", next.ForgottenAtEpoch(), 1)
		want(t, "floor at the store", w.record().Record.ForgottenAtEpoch, 1)
	})
}

func TestAForgetThatFindsTheLeaseLostEndsIt(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", leasetest.NewManualClock(time.Now()))
		w.advance(ttl)
		wantCode(t, "forget", l.Forget(t.Context()), lease.CodeLost)
		want(t, "check", fence(l.Check()), "lease_lost, expired")
	})
}

func TestTheContextOfAFencedLeaseHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		w.advance(window)
		want(t, "asked for only then", fence(context.Cause(l.Context())), "lease_expired_locally, expired")
	})
}

func TestALeaseSaysWhatItIs(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		attributes := map[string]string{"addr": "10.0.0.7:80"}
		l := acquire(t, w.holder("r1", w.replica(), func(c *holder.Config) { c.Attributes = attributes }), aKey)
		want(t, "key and owner", l.Key()+" of "+l.Owner(), aKey+" of r1")
		want(t, "attributes at the store", w.record().Record.Attributes["addr"], "10.0.0.7:80")
	})
}

func TestAnAnswerAboutAnotherGrantExtendsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := newHolder(t, foreign{w.memory}, holder.Config{Owner: "r1", TTL: ttl, Margin: margin, Clock: w.replica()})
		l := acquire(t, h, aKey)
		w.advance(time.Second)
		wantCode(t, "renew", l.Renew(t.Context()), lease.CodeOutcomeUnknown)
		want(t, "remaining", l.Remaining(), window-time.Second)
	})
}

// foreign is a store that answers renewals with the record of somebody else.
type foreign struct{ lease.Store }

func (f foreign) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	answer, err := f.Store.Renew(ctx, req)
	answer.Record.Owner = "r2"
	return answer, err
}

// Check is called before every write.
func BenchmarkCheck(b *testing.B) {
	h, err := holder.New(leasetest.NewMemory(holder.NewClock()), holder.Config{Owner: "r1", TTL: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	l, err := h.Acquire(b.Context(), aKey)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := l.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
