package holder_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

var errWork = errors.New("the work failed")

func TestRunGivesTheLeaseBackWhenTheWorkReturns(t *testing.T) {
	for _, wanted := range []error{nil, errWork} {
		inLiveWorld(t, func(t *testing.T, w *world) {
			h := w.holder("r1", lease.NewSystemClock())
			err := h.Run(t.Context(), aKey, func(ctx context.Context, l *holder.Lease) error {
				time.Sleep(time.Minute)
				succeed(t, "check", l.Check())
				succeed(t, "context", ctx.Err())
				return wanted
			})
			want(t, "result", err, wanted)
			want(t, "remaining at the store", w.record().Remaining, 0)
			want(t, "epoch", w.record().Record.Epoch, 1)
		})
	}
}

// The worker and the renewals end together, however the worker ends.
func TestAPanicReleasesTheLeaseAndGoesOn(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		func() {
			defer func() { want(t, "panic", recover(), any("oh")) }()
			_ = h.Run(t.Context(), aKey, func(context.Context, *holder.Lease) error { panic("oh") }, holder.AtHardDeadline(func(*holder.Lease) {}))
		}()
		want(t, "history", history(t, w.memory, aKey), "acquire:1 release:1")
		want(t, "leases", h.Stats().Leases, 0)
	})
}

func TestAPanicInAnOutageLetsTheLeaseLapse(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		func() {
			defer func() { _ = recover() }()
			_ = h.Run(t.Context(), aKey, func(context.Context, *holder.Lease) error { w.faulty.Cut(); panic("oh") })
		}()
		w.faulty.Heal()
		time.Sleep(ttl)
		want(t, "renewals", w.faulty.Calls(leasetest.Renew), 0)
		want(t, "remaining at the store", w.record().Remaining, 0)
	})
}

func TestRunEndsWithItsContextAndGivesTheLeaseBack(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := h.Run(ctx, aKey, func(ctx context.Context, l *holder.Lease) error {
			<-ctx.Done()
			time.Sleep(ttl) // it takes its time, and is the owner all the while
			succeed(t, "check", l.Check())
			return context.Cause(ctx)
		})
		want(t, "result", err, context.DeadlineExceeded)
		want(t, "remaining at the store", w.record().Remaining, 0)
	})
}

func TestRunWaitsItsTurn(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var order notes
		done := make(chan error)
		for i := range 5 {
			h := w.holder(fmt.Sprintf("r%d", i), lease.NewSystemClock())
			go func() {
				done <- h.Run(t.Context(), aKey, func(_ context.Context, l *holder.Lease) error {
					order.add(fmt.Sprintf("begin %d", l.Epoch()))
					time.Sleep(ttl)
					order.add(fmt.Sprintf("end %d", l.Epoch()))
					return nil
				})
			}()
		}
		for range 5 {
			succeed(t, "run", <-done)
		}
		want(t, "order", order.String(), "begin 1; end 1; begin 2; end 2; begin 3; end 3; begin 4; end 4; begin 5; end 5")
	})
}

func TestTheWorkIsCancelledAtTheDeadlineWithTheReason(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{Err: lease.ErrUnavailable})
		start := time.Now()
		err := h.Run(t.Context(), aKey, func(ctx context.Context, _ *holder.Lease) error {
			<-ctx.Done()
			want(t, "cancelled after", time.Since(start), window)
			want(t, "cause", fence(context.Cause(ctx)), "lease_expired_locally, unreachable")
			return errWork
		})
		want(t, "result", fence(err), "lease_expired_locally, unreachable")
		if !errors.Is(err, errWork) {
			t.Errorf("%v does not say what the work said", err)
		}
	})
}

// Work that returned nil after the fence may have done its last act too late.
func TestRunDoesNotHideAFence(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{Err: lease.ErrUnavailable})
		err := h.Run(t.Context(), aKey, func(context.Context, *holder.Lease) error {
			time.Sleep(window)
			w.faulty.FailAll(leasetest.Renew, leasetest.Fault{})
			time.Sleep(margin) // and it was resumed
			return nil
		})
		want(t, "result", fence(err), "lease_expired_locally, unreachable")
	})
}

func TestWorkThatIgnoresItsContextIsNotGivenAway(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) { c.TTL, c.Margin = 3*time.Second, 600*time.Millisecond })
		ctx, cancel := context.WithCancel(t.Context())
		succeed(t, "run", h.Run(ctx, aKey, func(ctx context.Context, l *holder.Lease) error {
			cancel()
			time.Sleep(5 * time.Second)
			succeed(t, "check", l.Check())
			want(t, "releases while it runs", w.faulty.Calls(leasetest.Release), 0)
			return nil
		}))
		want(t, "releases after", w.faulty.Calls(leasetest.Release), 1)
	})
}

func TestTheHardDeadlineComesHalfwayThroughTheMarginAndOnce(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var changes notes
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) { c.TTL, c.Margin = 3*time.Second, 600*time.Millisecond }, changes.states)
		w.faulty.FailAll(leasetest.Renew, leasetest.Fault{Err: lease.ErrUnavailable})
		start := time.Now()
		overdue := 0
		hook := holder.AtHardDeadline(func(l *holder.Lease) {
			overdue++
			want(t, "overdue after", time.Since(start), 2700*time.Millisecond)
			want(t, "key", l.Key(), aKey)
		})
		err := h.Run(t.Context(), aKey, func(context.Context, *holder.Lease) error {
			time.Sleep(5 * time.Second)
			want(t, "releases while it runs", w.faulty.Calls(leasetest.Release), 0)
			return nil
		}, hook)
		want(t, "result", fence(err), "lease_expired_locally, unreachable")
		want(t, "overdue", overdue, 1)
		synctest.Wait()
		want(t, "changes", changes.String(), "held; fenced; released")
	})
}

func TestTheHardDeadlineIsAtOnceIfTheLeaseIsLost(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		start := time.Now()
		overdue := 0
		err := h.Run(t.Context(), aKey, func(_ context.Context, l *holder.Lease) error {
			// Somebody evicts the owner.
			_, err := w.memory.Release(t.Context(), lease.ReleaseRequest{Key: aKey, Owner: l.Owner(), Epoch: l.Epoch()})
			succeed(t, "evict", err)
			wantCode(t, "renew", l.Renew(t.Context()), lease.CodeLost)
			time.Sleep(5 * time.Second)
			return nil
		}, holder.AtHardDeadline(func(*holder.Lease) {
			overdue++
			if took := time.Since(start); took > time.Second {
				t.Errorf("overdue after %v", took)
			}
		}))
		want(t, "result", fence(err), "lease_lost, expired")
		want(t, "overdue", overdue, 1)
	})
}

func TestTheHardDeadlineMovesWithTheLease(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		overdue := holder.AtHardDeadline(func(*holder.Lease) { t.Error("overdue") })
		succeed(t, "run", h.Run(t.Context(), aKey, func(context.Context, *holder.Lease) error { time.Sleep(10 * ttl); return nil }, overdue))
		succeed(t, "run that gives back itself", h.Run(t.Context(), aKey, func(_ context.Context, l *holder.Lease) error {
			err := l.Release(t.Context())
			time.Sleep(10 * ttl)
			return err
		}, overdue))
	})
}

func TestRunContendsAgainUnderAFreshEpochIfAsked(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var changes notes
		h := w.holder("r1", lease.NewSystemClock(), changes.states)
		var dead *holder.Lease
		succeed(t, "run", h.Run(t.Context(), aKey, func(ctx context.Context, l *holder.Lease) error {
			if l.Epoch() == 3 {
				return nil
			}
			dead = l
			w.faulty.Cut()
			<-ctx.Done()
			time.Sleep(time.Duration(l.Epoch()-1) * ttl) // resumed once, lost once
			w.faulty.Heal()
			time.Sleep(2 * ttl)
			return errWork
		}, holder.ContendAgain()))
		synctest.Wait()
		want(t, "changes", changes.String(), "held; fenced; held; released; held; fenced; lost; held; released")
		want(t, "the dead handle", fence(dead.Renew(t.Context())), "lease_lost, expired")
		want(t, "epoch", w.record().Record.Epoch, 3)
	})
}

func TestRunDoesNotContendAgainAfterItsOwnEnd(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		want(t, "work that failed", h.Run(t.Context(), aKey, func(context.Context, *holder.Lease) error { return errWork }, holder.ContendAgain()), errWork)
		err := h.Run(t.Context(), aKey, func(ctx context.Context, _ *holder.Lease) error {
			h.Close()
			<-ctx.Done()
			return nil
		}, holder.ContendAgain())
		want(t, "a closed holder", fence(err), "lease_released, released")
		want(t, "acquires", w.faulty.Calls(leasetest.Acquire), 2)
	})
}

func TestRunThatCannotBeginSaysWhy(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		w.hold("r0", lease.NewSystemClock())
		h := w.holder("r1", lease.NewSystemClock())
		never := func(context.Context, *holder.Lease) error { t.Error("it ran"); return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wantCode(t, "held by another", h.Run(ctx, aKey, never), lease.CodeHeld)
		wantCode(t, "a bad key", h.Run(t.Context(), "", never), lease.CodeInvalid)
	})
}

// Work that hands on why its context has ended says nothing new.
func TestRunSaysOnceThatItWasFenced(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		err := h.Run(t.Context(), aKey, func(ctx context.Context, _ *holder.Lease) error {
			w.faulty.Cut()
			<-ctx.Done()
			return fmt.Errorf("working: %w", context.Cause(ctx))
		})
		want(t, "result", err.Error(), `run: working: fenced from "`+aKey+`" at epoch 1 (lease_expired_locally, unreachable): stop, and wait for a renewal, or acquire it again`)
		wantCode(t, "result", err, lease.CodeFenced)
	})
}
