package leasetest_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func newFaulty() *leasetest.Faulty { return leasetest.NewFaulty(leasetest.NewMemory(newClock())) }

func epochOf(t *testing.T, s lease.Store, key string) uint64 {
	t.Helper()
	answer, err := s.Get(t.Context(), lease.GetRequest{Key: key})
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	return answer.Record.Epoch
}

func TestFaultyCutAndHeal(t *testing.T) {
	faulty := newFaulty()
	faulty.Cut()
	for method, err := range callAll(t.Context(), faulty) {
		if !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v, want ErrUnavailable", method, err)
		}
	}
	faulty.Heal()
	if epoch := epochOf(t, faulty, "k"); epoch != 0 {
		t.Errorf("the outage let an acquire through: epoch %d", epoch)
	}
	for method, err := range callAll(t.Context(), faulty) {
		if err != nil {
			t.Errorf("%s after the outage: %v", method, err)
		}
	}
}

func TestFaultyFailNextIsUsedUp(t *testing.T) {
	faulty := newFaulty()
	first, second := errors.New("first"), errors.New("second")
	for _, method := range []leasetest.Method{
		leasetest.Acquire, leasetest.Renew, leasetest.BatchRenew, leasetest.Release,
		leasetest.Forget, leasetest.Get, leasetest.List, leasetest.History,
	} {
		faulty.FailNext(method, leasetest.Fault{Err: first})
		faulty.FailNext(method, leasetest.Fault{Err: second})
	}
	for _, want := range []error{first, second, nil} {
		for method, err := range callAll(t.Context(), faulty) {
			if !errors.Is(err, want) {
				t.Errorf("%s: got %v, want %v", method, err, want)
			}
		}
	}
	if epoch := epochOf(t, faulty, "k"); epoch != 1 {
		t.Errorf("epoch is %d: a failure got through", epoch)
	}
}

func TestFaultyFailAllLastsUntilReplaced(t *testing.T) {
	faulty := newFaulty()
	standing, once := errors.New("standing"), errors.New("once")
	faulty.FailAll(leasetest.Renew, leasetest.Fault{Err: standing})
	faulty.FailNext(leasetest.Renew, leasetest.Fault{Err: once})
	for _, want := range []error{once, standing, standing} {
		if err := callAll(t.Context(), faulty)[leasetest.Renew]; !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	faulty.FailAll(leasetest.Renew, leasetest.Fault{})
	acquire(t, faulty, "other")
	if _, err := faulty.Renew(t.Context(), lease.RenewRequest{Key: "other", Owner: "o", Epoch: 1, TTL: time.Minute}); err != nil {
		t.Errorf("after it was replaced: %v", err)
	}
	if calls := faulty.Calls(leasetest.Renew); calls != 4 {
		t.Errorf("counted %d renewals, want 4", calls)
	}
}

func TestFaultyLosesAnswersAfterTheEffect(t *testing.T) {
	faulty := newFaulty()
	for _, method := range []leasetest.Method{leasetest.Acquire, leasetest.Renew, leasetest.BatchRenew, leasetest.Forget, leasetest.Release} {
		faulty.FailNext(method, leasetest.Fault{LoseAnswer: true})
	}
	for _, method := range []leasetest.Method{leasetest.Get, leasetest.List, leasetest.History} {
		faulty.FailNext(method, leasetest.Fault{LoseAnswer: true})
	}
	for method, err := range callAll(t.Context(), faulty) {
		want := lease.ErrOutcomeUnknown
		if method == leasetest.Get || method == leasetest.List || method == leasetest.History {
			want = lease.ErrUnavailable
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", method, err, want)
		}
	}
	page, err := faulty.History(t.Context(), lease.HistoryRequest{Key: "k"})
	if err != nil || len(page.Entries) != 3 { // neither renewal was of a longer lease
		t.Errorf("got %+v, %v, want the acquire, forget and release of which no answer came", page.Entries, err)
	}
}

func TestFaultyDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := newFaulty()
		faulty.FailNext(leasetest.Acquire, leasetest.Fault{DelayBefore: 2 * time.Second, DelayAfter: time.Second})
		start := time.Now()
		acquire(t, faulty, "k")
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v, want 3s", took)
		}
	})
}

func TestFaultyObeysContextsWhileItDelays(t *testing.T) {
	for name, c := range map[string]struct {
		fault leasetest.Fault
		want  error
		epoch uint64
	}{
		"before the effect":        {leasetest.Fault{DelayBefore: time.Hour}, lease.ErrUnavailable, 0},
		"before an injected error": {leasetest.Fault{DelayBefore: time.Hour, Err: errors.New("injected")}, lease.ErrUnavailable, 0},
		"after the effect":         {leasetest.Fault{DelayAfter: time.Hour}, lease.ErrOutcomeUnknown, 1},
		"never answered":           {leasetest.Fault{DelayAfter: math.MaxInt64}, lease.ErrOutcomeUnknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faulty := newFaulty()
				faulty.FailNext(leasetest.Acquire, c.fault)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := faulty.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute})
				if !errors.Is(err, c.want) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want %v for want of time", err, c.want)
				}
				if took := time.Since(start); took != time.Second {
					t.Errorf("took %v, want 1s", took)
				}
				if epoch := epochOf(t, faulty, "k"); epoch != c.epoch {
					t.Errorf("epoch is %d, want %d", epoch, c.epoch)
				}
			})
		})
	}
}

func TestFaultyCutMeetsACallUnderWay(t *testing.T) {
	for name, c := range map[string]struct {
		fault leasetest.Fault
		want  error
		epoch uint64
	}{
		"before the effect": {leasetest.Fault{DelayBefore: time.Minute}, lease.ErrUnavailable, 0},
		"after the effect":  {leasetest.Fault{DelayAfter: time.Minute}, lease.ErrOutcomeUnknown, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				faulty := newFaulty()
				faulty.FailNext(leasetest.Acquire, c.fault)
				var err error
				var group sync.WaitGroup
				group.Go(func() {
					_, err = faulty.Acquire(t.Context(), lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute})
				})
				synctest.Wait()
				faulty.Cut()
				group.Wait()
				faulty.Heal()
				if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if epoch := epochOf(t, faulty, "k"); epoch != c.epoch {
					t.Errorf("epoch is %d, want %d", epoch, c.epoch)
				}
			})
		})
	}
}

func TestFaultyAfterAcquire(t *testing.T) {
	faulty := newFaulty()
	var seen []uint64
	faulty.AfterAcquire(func(answer lease.Answer) {
		seen = append(seen, answer.Record.Epoch, epochOf(t, faulty, "k"))
	})
	acquire(t, faulty, "k")
	if _, err := faulty.Acquire(t.Context(), lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute}); lease.CodeOf(err) != lease.CodeHeld {
		t.Errorf("got %v, want it held", err)
	}
	faulty.AfterAcquire(nil)
	acquire(t, faulty, "other")
	if len(seen) != 2 || seen[0] != 1 || seen[1] != 1 {
		t.Errorf("the hook saw %v, want the one grant and what the store says by then", seen)
	}
}

func TestFaultyCountsCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faulty := newFaulty()
		callAll(t.Context(), faulty)
		if peak := faulty.Peak(); peak != 1 {
			t.Errorf("one call after the other were %d at once", peak)
		}
		faulty.FailAll(leasetest.Get, leasetest.Fault{DelayBefore: time.Second})
		var group sync.WaitGroup
		for range 5 {
			group.Go(func() { epochOf(t, faulty, "k") })
		}
		group.Wait()
		if peak, calls := faulty.Peak(), faulty.Calls(leasetest.Get); peak != 5 || calls != 6 {
			t.Errorf("%d of %d reads were at once, want 5 of 6", peak, calls)
		}
	})
}
