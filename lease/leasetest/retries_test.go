package leasetest_test

import (
	"context"
	"crypto/rand"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// triesAgain is a store that is far: of some of its mutations the answer is lost, and
// each of those is tried again.
type triesAgain struct {
	lease.Store
	lost  func(mutation int) bool // counted from 1
	count atomic.Int64
}

// again does what do does, and again if the answer to that is lost.
func again[T any](s *triesAgain, do func() (T, error)) (T, error) {
	if s.lost(int(s.count.Add(1))) {
		_, _ = do()
	}
	return do()
}

func (s *triesAgain) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if req.Wait > 0 {
		return s.Store.Acquire(ctx, req)
	}
	if req.RequestID == "" {
		req.RequestID = rand.Text()
	}
	return again(s, func() (lease.Answer, error) { return s.Store.Acquire(ctx, req) })
}

func (s *triesAgain) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	return again(s, func() (lease.Answer, error) { return s.Store.Renew(ctx, req) })
}

func (s *triesAgain) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	return again(s, func() ([]lease.Outcome, error) { return s.Store.BatchRenew(ctx, reqs) })
}

func (s *triesAgain) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	return again(s, func() (lease.Answer, error) { return s.Store.Release(ctx, req) })
}

func (s *triesAgain) Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
	return again(s, func() (lease.Answer, error) { return s.Store.Forget(ctx, req) })
}

// against runs a check against a store that tries those mutations again.
func against(t *testing.T, check leasetest.Check, retries bool, lost func(mutation int) bool) (err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := watchSubject(func(w lease.Watcher) lease.Watcher { return w })
		// A store in which nothing has happened has no position of its own to refuse.
		if _, err := s.Store.Acquire(t.Context(), lease.AcquireRequest{Key: "before", Owner: "o", TTL: lease.MinTTL}); err != nil {
			t.Fatal(err)
		}
		s.Store, s.Retries = &triesAgain{Store: s.Store, lost: lost}, retries
		err = check.Against(t.Context(), s)
	})
	return err
}

// looksAtChanges are the checks that see whether a call was tried again.
var looksAtChanges = []string{
	"an unexpired lease excludes everyone else",
	"a renewal moves the end to ttl from now and keeps the epoch",
	"a release ends the lease at once",
	"forgetting again changes nothing",
	"a batch of renewals has its outcomes in order, each on its own",
	"who waits is granted in the order of coming, by the release",
	"a release to a waiter hands over out of turn, to anyone else it does nothing",
	whatHappens,
}

func TestACallThatWasTriedAgainIsNoFault(t *testing.T) {
	for _, check := range slices.Concat(leasetest.Checks(), leasetest.WatchChecks()) {
		seen := false
		for n := 1; n <= 12; n++ {
			nth := func(mutation int) bool { return mutation == n }
			if err := against(t, check, true, nth); err != nil {
				t.Errorf("%s: mutation %d was tried again: %v", check.Name, n, err)
			}
			seen = seen || against(t, check, false, nth) != nil
		}
		if !seen && slices.Contains(looksAtChanges, check.Name) {
			t.Errorf("%s: passed without a word of retries", check.Name)
		}
	}
}

// A store that answers every call as a repetition is wrong, however far it is.
func TestCallsAreNotAlwaysTriedAgain(t *testing.T) {
	for _, check := range slices.Concat(leasetest.Checks(), leasetest.WatchChecks()) {
		always := func(int) bool { return true }
		if err := against(t, check, true, always); err == nil && slices.Contains(looksAtChanges, check.Name) {
			t.Errorf("%s: passed", check.Name)
		}
	}
}

// What was wrong once is a fault, also beside what was tried again.
func TestAFaultIsNotTriedUntilItIsGone(t *testing.T) {
	for _, check := range leasetest.Checks() {
		if check.Name != "a lease is over at its end instant, not a millisecond before" { // which has parts
			continue
		}
		for _, again := range []int{0, 2} { // mutation 2 is the first of the part that follows
			synctest.Test(t, func(t *testing.T) {
				s, lied := subject(healthy), false
				inner := s.Store
				s.Retries = true
				s.Store = &triesAgain{lost: func(mutation int) bool { return mutation == again }, Store: altered{
					Store: inner,
					get: func(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
						answer, err := inner.Get(ctx, req)
						if !lied {
							answer.Record.Epoch++
						}
						lied = true
						return answer, err
					},
				}}
				if check.Against(t.Context(), s) == nil {
					t.Errorf("mutation %d was tried again: passed", again)
				}
			})
		}
	}
}

// A broken store is as broken if it is far.
func TestBrokenStoresFailWithRetries(t *testing.T) {
	for name, c := range brokenStores() {
		t.Run(name, func(t *testing.T) {
			var failed []string
			synctest.Test(t, func(t *testing.T) {
				s := subject(c.wrap)
				s.Retries = true
				for _, failure := range leasetest.Run(t.Context(), s) {
					failed = append(failed, failure.Check)
				}
				time.Sleep(lease.MaxWait) // for what a broken store has left waiting
			})
			for _, check := range c.red {
				if !slices.Contains(failed, check) {
					t.Errorf("passed %q; failed %q", check, failed)
				}
			}
		})
	}
}
