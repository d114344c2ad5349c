package leasetest_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// newClock starts at a time of day that is no whole number of milliseconds.
func newClock() *leasetest.ManualClock {
	return leasetest.NewManualClock(time.Unix(1_764_000_000, 123_456_789))
}

// subject returns wrap's store around a new reference store, and its clock.
func subject(wrap func(lease.Store) lease.Store) leasetest.Subject {
	clock := newClock()
	return leasetest.Subject{
		Store: wrap(leasetest.NewMemory(clock)),
		Advance: func(_ context.Context, d time.Duration) error {
			clock.Advance(d)
			return nil
		},
	}
}

func healthy(s lease.Store) lease.Store { return s }

func TestMemoryConforms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := subject(healthy)
		for range 2 { // the second run finds a store in use
			for _, failure := range leasetest.Run(t.Context(), s) {
				t.Errorf("%s: %v", failure.Check, failure.Err)
			}
		}
	})
}

// conforms runs the checks against wrap's store. The bubble's time is that of waits.
func conforms(t *testing.T, wrap func(lease.Store) lease.Store) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		for _, failure := range leasetest.Run(t.Context(), subject(wrap)) {
			t.Errorf("%s: %v", failure.Check, failure.Err)
		}
	})
}

func TestMemoryConformsBehindRoundedInstants(t *testing.T) {
	conforms(t, func(s lease.Store) lease.Store { return roundsInstants{s} })
}

func TestMemoryConformsBehindALibraryThatAddsRequestIDs(t *testing.T) {
	conforms(t, func(s lease.Store) lease.Store { return &addsRequestIDs{Store: s} })
}

func TestFaultyWithoutAFaultConforms(t *testing.T) {
	conforms(t, func(s lease.Store) lease.Store { return leasetest.NewFaulty(s) })
}

func TestRunReportsEveryFailureOfAStoreThatIsDown(t *testing.T) {
	faulty := leasetest.NewFaulty(leasetest.NewMemory(newClock()))
	faulty.Cut()
	failures := leasetest.Run(t.Context(), leasetest.Subject{Store: faulty, Advance: func(context.Context, time.Duration) error { return nil }})
	if len(failures) != len(leasetest.Checks()) {
		t.Errorf("%d of %d checks failed", len(failures), len(leasetest.Checks()))
	}
	for _, failure := range failures {
		if failure.Err == nil || lease.CodeOf(failure.Err) == "" {
			t.Errorf("%s: the failure %v does not wrap what the store said", failure.Check, failure.Err)
		}
	}
}

func TestCheckNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, check := range slices.Concat(leasetest.Checks(), leasetest.WatchChecks()) {
		if seen[check.Name] {
			t.Errorf("two checks are called %q", check.Name)
		}
		seen[check.Name] = true
	}
}

// TestBrokenStoresFail shows that each check can fail, and that each broken store
// is caught by the checks that are about what it breaks.
func TestBrokenStoresFail(t *testing.T) {
	caught := map[string]bool{}
	for name, c := range brokenStores() {
		t.Run(name, func(t *testing.T) {
			failed := failuresIn(t, func(t *testing.T) []leasetest.Failure {
				defer time.Sleep(lease.MaxWait) // for what a broken store has left waiting
				return leasetest.Run(t.Context(), subject(c.wrap))
			})
			checkFailed(t, failed, c.red, c.green)
			maps.Copy(caught, failed)
		})
	}
	checkAllCaught(t, caught, leasetest.Checks())
}

// failuresIn returns the checks that fail when run runs in a bubble.
func failuresIn(t *testing.T, run func(*testing.T) []leasetest.Failure) map[string]bool {
	failed := map[string]bool{}
	synctest.Test(t, func(t *testing.T) {
		for _, failure := range run(t) {
			failed[failure.Check] = true
		}
	})
	return failed
}

func checkFailed(t *testing.T, failed map[string]bool, red, green []string) {
	t.Helper()
	for _, check := range red {
		if !failed[check] {
			t.Errorf("passed %q; failed %q", check, slices.Sorted(maps.Keys(failed)))
		}
	}
	for _, check := range green {
		if failed[check] {
			t.Errorf("failed %q, which it keeps", check)
		}
	}
}

func checkAllCaught(t *testing.T, caught map[string]bool, checks []leasetest.Check) {
	t.Helper()
	for _, check := range checks {
		if !caught[check.Name] {
			t.Errorf("nothing broken fails %q", check.Name)
		}
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if failures := leasetest.Run(ctx, subject(healthy)); len(failures) != len(leasetest.Checks()) {
		t.Errorf("%d of %d checks failed", len(failures), len(leasetest.Checks()))
	}
}
