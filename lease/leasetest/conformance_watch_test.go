package leasetest_test

import (
	"context"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// watchSubject returns wrap's watcher around a new reference store.
func watchSubject(wrap func(lease.Watcher) lease.Watcher) leasetest.Subject {
	clock := newClock()
	store := leasetest.NewMemory(clock)
	return leasetest.Subject{
		Store:   store,
		Watcher: wrap(store),
		Advance: func(_ context.Context, d time.Duration) error {
			clock.Advance(d)
			return nil
		},
		Compact: func(context.Context) error {
			store.Compact()
			return nil
		},
	}
}

func TestMemoryConformsAsAWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := watchSubject(func(w lease.Watcher) lease.Watcher { return w })
		for range 2 { // the second run finds a store in use
			for _, failure := range leasetest.RunWatch(t.Context(), s) {
				t.Errorf("%s: %v", failure.Check, failure.Err)
			}
		}
	})
}

func TestRunWatchFailsWithoutAWatcher(t *testing.T) {
	if failures := leasetest.RunWatch(t.Context(), subject(healthy)); len(failures) != len(leasetest.WatchChecks()) {
		t.Errorf("%d of %d checks failed", len(failures), len(leasetest.WatchChecks()))
	}
}

// TestBrokenWatchersFail shows that each check of watching can fail, and that each
// broken watcher is caught by the checks that are about what it breaks.
func TestBrokenWatchersFail(t *testing.T) {
	caught := map[string]bool{}
	for name, c := range brokenWatchers() {
		t.Run(name, func(t *testing.T) {
			failed := failuresIn(t, func(t *testing.T) []leasetest.Failure { return leasetest.RunWatch(t.Context(), watchSubject(c.wrap)) })
			checkFailed(t, failed, c.red, c.green)
			maps.Copy(caught, failed)
		})
	}
	checkAllCaught(t, caught, leasetest.WatchChecks())
}
