package holder_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// While a caller's own request is out, the automatic renewal waits for its end and then
// comes, if it is still due.
func TestTheAutomaticRenewalTakesItsTurnToo(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", lease.NewSystemClock())
		w.faulty.FailAll(leasetest.Forget, leasetest.Fault{DelayAfter: 1500 * time.Millisecond})
		time.Sleep(ttl/3 - time.Second)
		succeed(t, "forget, during which a renewal falls due", l.Forget(t.Context()))
		synctest.Wait()
		want(t, "renewals", w.faulty.Calls(leasetest.Renew), 1)
		want(t, "remaining", l.Remaining(), window)
		want(t, "most requests at once", w.faulty.Peak(), 1)
	})
}

func TestOneTryIsBounded(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", lease.NewSystemClock())
		for method, call := range map[leasetest.Method]func(context.Context) error{leasetest.Renew: l.Renew, leasetest.Forget: l.Forget} {
			succeed(t, "renew", l.Renew(t.Context()))
			w.faulty.FailNext(method, leasetest.Fault{DelayAfter: time.Hour})
			start := time.Now()
			wantCode(t, string(method), call(context.Background()), lease.CodeOutcomeUnknown)
			want(t, string(method)+" took", time.Since(start), window/3)
		}
	})
}

func TestAReleasedLeaseIsNotRenewed(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		l := acquire(t, h, aKey)
		w.faulty.Cut()
		wantCode(t, "release", l.Release(t.Context()), lease.CodeUnavailable)
		w.faulty.Heal()
		time.Sleep(3 * ttl)
		want(t, "renewals", w.faulty.Calls(leasetest.Renew), 0)
		want(t, "leases", h.Stats().Leases, 0)
	})
}

func TestReleaseGivesUpWhenTheLeaseHasEndedByItself(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", lease.NewSystemClock())
		w.faulty.FailAll(leasetest.Release, leasetest.Fault{DelayBefore: time.Hour})
		start := time.Now()
		wantCode(t, "release", l.Release(context.Background()), lease.CodeUnavailable)
		want(t, "took", time.Since(start), ttl)
	})
}
