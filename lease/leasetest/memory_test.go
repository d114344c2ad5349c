package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestMemoryStartsItsClockAtTheTimeOfDay(t *testing.T) {
	clock := newClock()
	clock.Advance(time.Hour)
	start := clock.Wall()
	store := leasetest.NewMemory(clock)
	clock.SetWall(start.Add(-24 * time.Hour))
	clock.Advance(time.Second)
	answer, err := store.Get(t.Context(), lease.GetRequest{Key: "k"})
	if err != nil || int64(answer.Now) != start.Add(time.Second).UnixNano() {
		t.Errorf("a second after %d it is %d, %v", start.UnixNano(), answer.Now, err)
	}
}

func TestMemoryHistoryHasTheTimeOfDay(t *testing.T) {
	clock := newClock()
	store := leasetest.NewMemory(clock)
	wall := time.Unix(1_000_000_000, 0)
	clock.SetWall(wall)
	acquire(t, store, "k")
	page, err := store.History(t.Context(), lease.HistoryRequest{})
	if err != nil || len(page.Entries) != 1 || !page.Entries[0].Wall.Equal(wall) {
		t.Errorf("got %+v, %v, want an entry of %v", page.Entries, err, wall)
	}
}

func acquire(t *testing.T, store lease.Store, key string) lease.Answer {
	t.Helper()
	answer, err := store.Acquire(t.Context(), lease.AcquireRequest{Key: key, Owner: "o", TTL: time.Minute})
	if err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return answer
}

func TestMemoryRefusesEndedContextsWithTheirCause(t *testing.T) {
	store := leasetest.NewMemory(newClock())
	cause := errors.New("the reason")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for name, err := range callAll(ctx, store) {
		if !errors.Is(err, lease.ErrUnavailable) || !errors.Is(err, cause) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// callAll calls every method for the key k at epoch 1 and returns their errors.
func callAll(ctx context.Context, s lease.Store) map[leasetest.Method]error {
	errs := map[leasetest.Method]error{}
	_, errs[leasetest.Acquire] = s.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Second})
	_, errs[leasetest.Renew] = s.Renew(ctx, lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second})
	_, errs[leasetest.BatchRenew] = s.BatchRenew(ctx, []lease.RenewRequest{{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second}})
	_, errs[leasetest.Forget] = s.Forget(ctx, lease.ForgetRequest{Key: "k", Owner: "o", Epoch: 1})
	_, errs[leasetest.Release] = s.Release(ctx, lease.ReleaseRequest{Key: "k", Owner: "o", Epoch: 1})
	_, errs[leasetest.Get] = s.Get(ctx, lease.GetRequest{Key: "k"})
	_, errs[leasetest.List] = s.List(ctx, lease.ListRequest{})
	_, errs[leasetest.History] = s.History(ctx, lease.HistoryRequest{})
	return errs
}

func TestMemoryKeepsTheLatestOfAllKeys(t *testing.T) {
	store := leasetest.NewMemory(newClock())
	const kept, more = 10_000, 10
	for i := range kept + more {
		acquire(t, store, fmt.Sprintf("k%05d", i))
	}
	req := lease.HistoryRequest{PageSize: lease.MaxPageSize}
	for next := more; ; {
		page, err := store.History(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if want := fmt.Sprintf("k%05d", next); e.Key != want {
				t.Fatalf("got %s, want %s", e.Key, want)
			}
			next++
		}
		if req.PageToken = page.NextPageToken; req.PageToken == "" {
			if next != kept+more {
				t.Errorf("the history ends before %d", next)
			}
			return
		}
	}
}

// A page that begins where entries have been trimmed meanwhile goes on with the
// oldest that are left.
func TestMemoryHistoryTokenOutlivesItsEntry(t *testing.T) {
	store := leasetest.NewMemory(newClock())
	grant := func() {
		answer := acquire(t, store, "k")
		if _, err := store.Release(t.Context(), lease.ReleaseRequest{Key: "k", Owner: "o", Epoch: answer.Record.Epoch}); err != nil {
			t.Fatal(err)
		}
	}
	grant()
	grant()
	first, err := store.History(t.Context(), lease.HistoryRequest{Key: "k", PageSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range leasetest.KeptGrants {
		grant()
	}
	second, err := store.History(t.Context(), lease.HistoryRequest{Key: "k", PageSize: 1, PageToken: first.NextPageToken})
	if err != nil || len(second.Entries) != 1 || second.Entries[0].Epoch != 3 {
		t.Errorf("got %+v, %v, want the grant of epoch 3", second.Entries, err)
	}
}

func TestMemoryRefusesTheTokenOfAnotherReading(t *testing.T) {
	store := leasetest.NewMemory(newClock())
	for _, key := range []string{"a", "b"} {
		acquire(t, store, key)
	}
	listing, err := store.List(t.Context(), lease.ListRequest{PageSize: 1})
	if err != nil || listing.NextPageToken == "" {
		t.Fatalf("got the token %q, %v", listing.NextPageToken, err)
	}
	_, err = store.History(t.Context(), lease.HistoryRequest{PageToken: listing.NextPageToken})
	if lease.CodeOf(err) != lease.CodeInvalid {
		t.Errorf("got %v, want it refused", err)
	}
}

// Many owners contend for few keys on a clock that runs: no epoch is granted
// twice, none is left out, and one after the other they all let go.
func TestMemoryConcurrently(t *testing.T) {
	const owners, rounds, keys = 8, 200, 3
	clock := newClock()
	store := leasetest.NewMemory(clock)
	var mu sync.Mutex
	granted := map[string]map[uint64]int{}
	var group sync.WaitGroup
	for owner := range owners {
		group.Go(func() {
			for round := range rounds {
				key := fmt.Sprint("k", round%keys)
				answer := contend(t, store, lease.AcquireRequest{Key: key, Owner: fmt.Sprint("o", owner), TTL: time.Second, RequestID: fmt.Sprint(round)})
				clock.Advance(50 * time.Millisecond)
				if answer.Record.Epoch > 0 {
					mu.Lock()
					if granted[key] == nil {
						granted[key] = map[uint64]int{}
					}
					granted[key][answer.Record.Epoch]++
					mu.Unlock()
				}
			}
		})
	}
	group.Wait()
	for key, epochs := range granted {
		for epoch := uint64(1); epoch <= uint64(len(epochs)); epoch++ {
			if epochs[epoch] != 1 {
				t.Errorf("epoch %d of %s was granted %d times", epoch, key, epochs[epoch])
			}
		}
	}
}

// contend acquires, and with a grant goes through everything else; it returns the
// grant, or nothing.
func contend(t *testing.T, store lease.Store, req lease.AcquireRequest) lease.Answer {
	ctx := t.Context()
	answer, err := store.Acquire(ctx, req)
	var held *lease.HeldError
	if errors.As(err, &held) {
		return lease.Answer{}
	}
	if err != nil {
		t.Errorf("acquire: %v", err)
		return lease.Answer{}
	}
	epoch := answer.Record.Epoch
	var lost *lease.LostError
	check := func(err error) {
		if err != nil && !errors.As(err, &lost) {
			t.Errorf("epoch %d of %s: %v", epoch, req.Key, err)
		}
	}
	_, err = store.Renew(ctx, lease.RenewRequest{Key: req.Key, Owner: req.Owner, Epoch: epoch, TTL: req.TTL})
	check(err)
	_, err = store.BatchRenew(ctx, []lease.RenewRequest{{Key: req.Key, Owner: req.Owner, Epoch: epoch, TTL: req.TTL}})
	check(err)
	_, err = store.Forget(ctx, lease.ForgetRequest{Key: req.Key, Owner: req.Owner, Epoch: epoch})
	check(err)
	_, err = store.List(ctx, lease.ListRequest{Selection: lease.HeldOnly})
	check(err)
	_, err = store.History(ctx, lease.HistoryRequest{Key: req.Key})
	check(err)
	_, err = store.Release(ctx, lease.ReleaseRequest{Key: req.Key, Owner: req.Owner, Epoch: epoch})
	check(err)
	return answer
}
