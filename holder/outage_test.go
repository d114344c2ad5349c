package holder_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestASlowAnswerCountsFromItsSending(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) { c.TTL, c.Margin = 5*time.Second, time.Second })
		l := acquire(t, h, aKey)
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{DelayAfter: 600 * time.Millisecond})
		for range 3 {
			start := time.Now()
			succeed(t, "renew", l.Renew(t.Context()))
			if left, most := l.Remaining(), 4*time.Second-time.Since(start); left > most {
				t.Fatalf("%v left %v after sending", left, time.Since(start))
			}
		}
	})
}

func TestAnswersThatAllTakeTooLongEndTheLeaseInTime(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) { c.TTL, c.Margin = 5*time.Second, time.Second })
		l := acquire(t, h, aKey)
		start := time.Now()
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{DelayAfter: 2 * time.Second})
		<-l.Context().Done()
		want(t, "held for", time.Since(start), 4*time.Second)
		time.Sleep(time.Second)
		want(t, "a second later", l.Held(), false)
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{})
		time.Sleep(2 * time.Second) // each try that was not heard has kept the store's lease alive
		want(t, "when answers come again", l.Held(), true)
	})
}

func TestAnAnswerAfterItsOwnDeadlineRevivesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clock := w.replica()
		l := w.hold("r1", clock)
		w.advance(time.Second)
		w.faulty.FailNext(leasetest.Renew, leasetest.Fault{DelayAfter: time.Millisecond})
		errs := overlapping(t,
			func() error { return l.Renew(t.Context()) },
			func() error { clock.Advance(window); return nil })
		succeed(t, "renew", errs[0])
		want(t, "check", fence(l.Check()), "lease_expired_locally, unreachable")
		succeed(t, "a faster renewal", l.Renew(t.Context()))
		succeed(t, "check", l.Check())
	})
}

func TestAFailedRenewalIsTriedAgainInTime(t *testing.T) {
	for name, fault := range map[string]leasetest.Fault{
		"refused": {Err: lease.ErrUnavailable},
		"unheard": {LoseAnswer: true},
		"hanging": {DelayBefore: time.Hour},
		"unread":  {DelayAfter: time.Hour},
		"unknown": {Err: errors.New("something else")},
	} {
		t.Run(name, func(t *testing.T) {
			inLiveWorld(t, func(t *testing.T, w *world) {
				l := w.hold("r1", lease.NewSystemClock())
				work := l.Context()
				for range 2 { // of the three tries that fit
					w.faulty.FailNext(leasetest.Renew, fault)
				}
				time.Sleep(time.Minute)
				succeed(t, "check", l.Check())
				succeed(t, "context", work.Err())
			})
		})
	}
}

// The tries of one window come at the pace that is documented: the first after a third
// of the ttl, the next ever sooner.
func TestTriesComeFasterAsTheDeadlineNears(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", lease.NewSystemClock())
		w.faulty.Cut()
		time.Sleep(ttl*3/10 - 1)
		want(t, "tries before a third of the ttl", w.faulty.Calls(leasetest.Renew), 0)
		time.Sleep(window/2 - ttl*3/10)
		early := w.faulty.Calls(leasetest.Renew)
		time.Sleep(window/4 + window/8)
		middle := w.faulty.Calls(leasetest.Renew) - early
		time.Sleep(window/8 - 1)
		last := w.faulty.Calls(leasetest.Renew) - early - middle
		succeed(t, "check, just before the deadline", l.Check())
		if early < 1 || early > 4 || middle < 3 || last <= middle || last > 40 {
			t.Errorf("%d, %d and %d tries", early, middle, last)
		}
	})
}

func TestAfterALossTheKeyCanBeAcquiredAndIsRenewedAgain(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		lost := acquire(t, h, aKey)
		w.faulty.Cut()
		time.Sleep(2 * ttl)
		w.faulty.Heal()
		time.Sleep(ttl)
		want(t, "check", fence(lost.Check()), "lease_lost, expired")
		l := acquire(t, h, aKey)
		want(t, "epoch", l.Epoch(), 2)
		time.Sleep(5 * ttl)
		succeed(t, "check", l.Check())
		want(t, "the dead handle", fence(lost.Renew(t.Context())), "lease_lost, expired")
	})
}

// The store's lease outlives the outage: nobody else held the key, and nothing had to
// be acquired anew.
func TestAnOutageWithinTheLeaseIsResumed(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var changes notes
		h := w.holder("r1", lease.NewSystemClock(), changes.states)
		l := acquire(t, h, aKey)
		work := l.Context()
		w.faulty.Cut()
		<-work.Done()
		time.Sleep(margin / 2)
		w.faulty.Heal()
		time.Sleep(margin)
		succeed(t, "check", l.Check())
		want(t, "epoch", w.record().Record.Epoch, 1)
		want(t, "changes", changes.String(), "held; fenced; held")
		want(t, "resumed", h.Stats().Resumed, 1)
	})
}

func TestALossIsSignalledOnceAtTheDeadlineWithItsReason(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		start := time.Now()
		var signals notes
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) {
			c.OnChange = func(change holder.Change) {
				if change.Fence != nil {
					signals.add(fmt.Sprintf("%s after %v", fence(change.Fence), time.Since(start)))
				}
			}
		})
		l := acquire(t, h, aKey)
		defer context.AfterFunc(l.Context(), func() { signals.add("cancelled") })()
		w.faulty.Cut() // for good
		time.Sleep(time.Hour)
		for _, signal := range []string{"lease_expired_locally, unreachable after 8s", "cancelled"} {
			if strings.Count(signals.String(), signal) != 1 || len(signals.lines) != 2 {
				t.Errorf("signals: %s", &signals)
			}
		}
	})
}

func TestTheCausesOfALossDiffer(t *testing.T) {
	renew := func(w *world, l *holder.Lease) { _ = l.Renew(w.t.Context()) }
	for name, c := range map[string]struct {
		happen func(w *world, l *holder.Lease)
		want   string
	}{
		"the store is away": {func(w *world, l *holder.Lease) {
			w.faulty.Cut()
			renew(w, l)
			w.advance(window)
		}, "lease_expired_locally, unreachable"},
		"the store was away": {func(w *world, l *holder.Lease) {
			w.faulty.FailNext(leasetest.Renew, leasetest.Fault{Err: lease.ErrUnavailable})
			renew(w, l)
			renew(w, l)
			w.advance(window)
		}, "lease_expired_locally, expired"},
		"the process was stopped": {func(w *world, _ *holder.Lease) { w.advance(window) }, "lease_expired_locally, expired"},
		"the store ended it": {func(w *world, l *holder.Lease) {
			w.advance(ttl)
			renew(w, l)
		}, "lease_lost, expired"},
		"another has the key": {func(w *world, l *holder.Lease) {
			w.advance(ttl)
			w.hold("r2", w.replica())
			renew(w, l)
		}, "lease_lost, superseded"},
		"it was released": {func(w *world, l *holder.Lease) { _ = l.Release(w.t.Context()) }, "lease_released, released"},
	} {
		inWorld(t, func(t *testing.T, w *world) {
			l := w.hold("r1", w.replica())
			work := l.Context()
			c.happen(w, l)
			want(t, name, fence(l.Check()), c.want)
			if work.Err() == nil {
				t.Errorf("%s: the context goes on", name)
			}
		})
	}
}
