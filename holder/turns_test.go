package holder_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// calls makes calls one after the other, each before the one before it has returned,
// and returns their errors.
func overlapping(t *testing.T, calls ...func() error) []error {
	t.Helper()
	errs := make([]error, len(calls))
	done := make(chan struct{})
	for i, call := range calls {
		go func() {
			errs[i] = call()
			done <- struct{}{}
		}()
		synctest.Wait()
	}
	for range calls {
		<-done
	}
	return errs
}

func TestRequestsOfALeaseGoOneAtATimeInCallOrder(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", lease.NewSystemClock())
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{DelayBefore: 5 * time.Millisecond})
		renew := func() error { return l.Renew(t.Context()) }
		release := func() error { return l.Release(t.Context()) }
		forget := func() error { return l.Forget(t.Context()) }
		errs := overlapping(t, renew, renew, forget, renew, release, renew)
		for _, err := range errs[:5] {
			succeed(t, "asked before the release returned", err)
		}
		want(t, "asked after the release", fence(errs[5]), "lease_released, released")
		want(t, "history", history(t, w.memory, aKey), "acquire:1 renew:1 renew:1 forget:1 renew:1 release:1")
		want(t, "most requests at once", w.faulty.Peak(), 1)
	})
}

func TestARenewalBehindOneThatFindsTheLeaseLostIsNotSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		w.advance(ttl)
		w.faulty.FailNext(leasetest.Renew, leasetest.Fault{DelayBefore: 5 * time.Millisecond})
		renew := func() error { return l.Renew(t.Context()) }
		errs := overlapping(t, renew, renew)
		wantCode(t, "the first", errs[0], lease.CodeLost)
		want(t, "the second", fence(errs[1]), "lease_lost, expired")
		want(t, "requests", w.faulty.Calls(leasetest.Renew), 1)
	})
}

func TestHeldIsFalseFromTheCallOfRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{DelayBefore: 5 * time.Millisecond})
		errs := overlapping(t,
			func() error { return l.Renew(t.Context()) },
			func() error { return l.Release(t.Context()) },
			l.Check)
		want(t, "while the release waits its turn", fence(errs[2]), "lease_released, released")
		succeed(t, "renew", errs[0])
		succeed(t, "release", errs[1])
	})
}

func TestWhoGivesUpWaitingLeavesTheTurnToTheNext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{DelayAfter: 100 * time.Millisecond})
		short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		errs := overlapping(t,
			func() error { return l.Renew(t.Context()) },
			func() error { return l.Renew(short) },
			func() error { return l.Renew(t.Context()) })
		succeed(t, "the first", errs[0])
		wantCode(t, "who gave up", errs[1], lease.CodeUnavailable)
		if !errors.Is(errs[1], context.DeadlineExceeded) {
			t.Errorf("%v does not say why", errs[1])
		}
		succeed(t, "the last", errs[2])
		want(t, "requests", w.faulty.Calls(leasetest.Renew), 2)
	})
}

func TestAForgetThatWaitedPastTheDeadlineIsNotSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		w.faulty.FailNext(leasetest.Renew, leasetest.Fault{DelayBefore: time.Millisecond, Err: lease.ErrUnavailable})
		errs := overlapping(t,
			func() error { return l.Renew(t.Context()) },
			func() error { return l.Forget(t.Context()) },
			func() error { w.pass(window); return nil })
		want(t, "forget", fence(errs[1]), "lease_expired_locally, unreachable")
		want(t, "requests", w.faulty.Calls(leasetest.Forget), 0)
	})
}
