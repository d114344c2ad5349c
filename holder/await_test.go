package holder_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestAClosedHolderHoldsNothing(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var changes notes
		h := w.holder("r1", lease.NewSystemClock(), changes.states)
		l := acquire(t, h, aKey)
		work := l.Context()
		h.Close()
		h.Close()
		want(t, "check", fence(l.Check()), "lease_released, released")
		want(t, "context", fence(context.Cause(work)), "lease_released, released")
		want(t, "changes, all delivered", changes.String(), "held; released")
		if w.record().Remaining == 0 {
			t.Error("it was given back")
		}
		_, err := h.Acquire(t.Context(), "another")
		wantCode(t, "acquire", err, lease.CodeUnavailable)
		want(t, "history of that", history(t, w.memory, "another"), "")
		succeed(t, "release", l.Release(t.Context()))
		want(t, "remaining at the store", w.record().Remaining, 0)
	})
}

func TestCloseEndsWhatWaits(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		w.hold("r0", lease.NewSystemClock())
		h := w.holder("r1", lease.NewSystemClock())
		ended := make(chan error)
		go func() { _, err := h.Await(t.Context(), aKey); ended <- err }()
		go func() { _, err := h.Acquire(t.Context(), "other"); ended <- err }()
		w.faulty.FailAll(leasetest.Acquire, leasetest.Fault{DelayBefore: time.Hour})
		time.Sleep(3 * ttl)
		h.Close()
		for range 2 {
			if err := <-ended; err == nil || !strings.Contains(err.Error(), "closed") {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestAwaitTakesItsTurn(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		first := w.hold("r1", lease.NewSystemClock())
		time.AfterFunc(time.Minute, func() { _ = first.Release(context.Background()) })
		h := w.holder("r2", lease.NewSystemClock())
		start := time.Now()
		l, err := h.Await(t.Context(), aKey)
		succeed(t, "await", err)
		want(t, "epoch", l.Epoch(), 2)
		if took := time.Since(start); took < time.Minute || took > time.Minute+ttl/3 {
			t.Errorf("after %v", took)
		}
		if n := w.faulty.Calls(leasetest.Acquire); n > 40 {
			t.Errorf("asked %d times in a minute", n)
		}
	})
}

// A key whose owner died is taken over soon after its lease ends.
func TestAwaitIsThereWhenALeaseEnds(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		dead := w.holder("r1", lease.NewSystemClock())
		acquire(t, dead, aKey)
		dead.Close()
		start := time.Now()
		_, err := w.holder("r2", lease.NewSystemClock()).Await(t.Context(), aKey)
		succeed(t, "await", err)
		if took := time.Since(start); took < ttl || took > ttl+ttl/8 {
			t.Errorf("after %v", took)
		}
	})
}

func TestAwaitGoesOnAfterAGrantThatCameTooLate(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		late := window
		w.faulty.AfterAcquire(func(lease.Answer) { time.Sleep(late); late = 0 })
		l, err := w.holder("r1", lease.NewSystemClock()).Await(t.Context(), aKey)
		succeed(t, "await", err)
		want(t, "epoch", l.Epoch(), 2)
	})
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		w.hold("r1", lease.NewSystemClock())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := w.holder("r2", lease.NewSystemClock()).Await(ctx, aKey)
		wantCode(t, "await", err, lease.CodeHeld)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}
