package leasetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// follow has a watch go on beside the test, until the test ends, and returns its updates.
func follow(t *testing.T, w lease.Watcher, req lease.WatchRequest) <-chan lease.WatchUpdate {
	updates := make(chan lease.WatchUpdate)
	ctx, cancel := context.WithCancel(t.Context())
	var followed sync.WaitGroup
	followed.Go(func() {
		for u, err := range w.Watch(ctx, req) {
			if err != nil {
				if ctx.Err() == nil {
					t.Errorf("%+v: %v", req, err)
				}
				return
			}
			select {
			case updates <- u:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() { cancel(); followed.Wait() })
	return updates
}

// silent expects that a watch, which has had all the time it needs, tells nothing.
func silent(t *testing.T, updates <-chan lease.WatchUpdate) {
	t.Helper()
	synctest.Wait()
	select {
	case u := <-updates:
		t.Errorf("want nothing told, got %+v", u)
	default:
	}
}

func wantEvent(t *testing.T, u lease.WatchUpdate, kind lease.EventKind, key string) {
	t.Helper()
	if len(u.Events) != 1 || u.Events[0].Kind != kind || u.Events[0].Record.Key != key {
		t.Errorf("want %q %v, got %+v", key, kind, u)
	}
}

func TestMemoryTellsAnEndWhenAManualClockPassesIt(t *testing.T) {
	for name, clock := range map[string]interface {
		lease.Clock
		Advance(time.Duration)
	}{"manual": newClock(), "tripping": leasetest.NewTrippingClock(time.Now()), "built on one": struct{ *leasetest.ManualClock }{newClock()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := leasetest.NewMemory(clock)
				updates := follow(t, store, lease.WatchRequest{})
				<-updates
				began := time.Now()
				acquire(t, store, "k")
				wantEvent(t, <-updates, lease.Acquired, "k")
				clock.Advance(time.Minute - 1)
				silent(t, updates)
				clock.Advance(1)
				wantEvent(t, <-updates, lease.Expired, "k")
				if waited := time.Since(began); waited != 0 {
					t.Errorf("it took %v of other clocks", waited)
				}
			})
		})
	}
}

func TestMemoryTellsAnEndOnTheClockOfTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(lease.NewSystemClock())
		updates := follow(t, store, lease.WatchRequest{})
		<-updates
		began := time.Now()
		acquire(t, store, "k")
		for u := range updates {
			if len(u.Events) > 0 && u.Events[0].Kind == lease.Expired {
				if at := u.Events[0].At.Sub(u.Events[0].Record.LeaseUntil); at != 0 || time.Since(began) != time.Minute {
					t.Errorf("it was found %v after the end, after %v", at, time.Since(began))
				}
				return
			}
		}
	})
}

// ownClock is a manual clock that says nothing of its moves.
type ownClock struct{ manual *leasetest.ManualClock }

func (c ownClock) Monotonic() time.Duration { return c.manual.Monotonic() }
func (c ownClock) Wall() time.Time          { return c.manual.Wall() }

func TestMemoryTellsAnEndOnAnyClockSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := ownClock{newClock()}
		store := leasetest.NewMemory(clock)
		updates := follow(t, store, lease.WatchRequest{})
		<-updates
		acquire(t, store, "k")
		wantEvent(t, <-updates, lease.Acquired, "k")
		clock.manual.Advance(time.Minute)
		began := time.Now()
		wantEvent(t, <-updates, lease.Expired, "k")
		if waited := time.Since(began); waited > 100*time.Millisecond {
			t.Errorf("it took %v", waited)
		}
	})
}

// A watch of a store in which no lease is held wakes up to tell its position only.
func TestMemoryTellsItsPositionInSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewMemory(lease.NewSystemClock())
		updates := follow(t, store, lease.WatchRequest{})
		first, began := <-updates, time.Now()
		for range 10 {
			if u := <-updates; u.Position != first.Position || len(u.Events) > 0 {
				t.Errorf("want %v told, got %+v", first.Position, u)
			}
		}
		if passed := time.Since(began); passed != 40*time.Second {
			t.Errorf("ten positions took %v", passed)
		}
	})
}

func TestMemoryEndsAWatchAtOnceWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		for _, err := range leasetest.NewMemory(newClock()).Watch(ctx, lease.WatchRequest{}) {
			if passed := time.Since(began); err != nil && (passed != time.Second || !errors.Is(err, context.DeadlineExceeded) || lease.CodeOf(err) != "") {
				t.Errorf("after %v: %v", passed, err)
			}
		}
	})
}
