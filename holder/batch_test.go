package holder_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// acquireMany has h own n keys.
func acquireMany(t *testing.T, h *holder.Holder, n int) []*holder.Lease {
	t.Helper()
	leases := make([]*holder.Lease, n)
	for i := range leases {
		leases[i] = acquire(t, h, fmt.Sprintf("shard/%d", i))
	}
	return leases
}

// What ten thousand leases of ten seconds cost: a few requests a second, no goroutine
// each, and little memory.
func TestTenThousandLeasesCostLittle(t *testing.T) {
	const n, seconds = 10_000, 30
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		before, goroutines := heapInUse(), runtime.NumGoroutine()
		stored := leasetest.NewMemory(lease.NewSystemClock()) // what the store itself takes
		leases := acquireMany(t, h, n)
		after := heapInUse()
		for _, l := range leases {
			_, err := stored.Acquire(t.Context(), lease.AcquireRequest{Key: l.Key(), Owner: "r1", TTL: ttl, RequestID: l.Key()})
			succeed(t, "acquire", err)
		}
		each := (int(after-before) - int(heapInUse()-after)) / n
		more := runtime.NumGoroutine() - goroutines
		requests := h.Stats().Requests
		time.Sleep(seconds * time.Second)
		rate := float64(h.Stats().Requests-requests) / seconds
		t.Logf("%d leases: %.1f requests a second, about %d bytes each, %d goroutines more", n, rate, each, more)
		if rate > 6 || each > 1000 || more > 0 {
			t.Errorf("that is too much")
		}
		for _, l := range leases {
			succeed(t, "check", l.Check())
		}
		runtime.KeepAlive(stored)
	})
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// All of them come through an outage shorter than their window, and through a time
// when half of the batches fail.
func TestManyLeasesComeThroughAnOutage(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		leases := acquireMany(t, w.holder("r1", lease.NewSystemClock()), 3000)
		time.Sleep(ttl)
		w.faulty.Cut()
		time.Sleep(window - ttl/3 - ttl/10)
		w.faulty.Heal()
		time.Sleep(2 * time.Second)
		for range 50 {
			w.faulty.FailNext(leasetest.BatchRenew, leasetest.Fault{LoseAnswer: true})
			w.faulty.FailNext(leasetest.BatchRenew, leasetest.Fault{})
		}
		time.Sleep(2 * ttl)
		for _, l := range leases {
			succeed(t, "check", l.Check())
		}
	})
}

// renewals is a store that notes how renewals come.
type renewals struct {
	lease.Store
	mu      sync.Mutex
	sizes   []int
	perKey  map[string]int // outstanding
	overlap bool
	respond func(lease.RenewRequest) error // nil: as the store does
}

func (r *renewals) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	r.mu.Lock()
	r.sizes = append(r.sizes, len(reqs))
	for _, req := range reqs {
		if r.perKey[req.Key]++; r.perKey[req.Key] > 1 {
			r.overlap = true
		}
	}
	r.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	outcomes, err := r.Store.BatchRenew(ctx, reqs)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, req := range reqs {
		r.perKey[req.Key]--
		if r.respond != nil {
			if err := r.respond(req); err != nil {
				outcomes[i] = lease.Outcome{Err: err}
			}
		}
	}
	return outcomes, err
}

func TestRenewalsThatAreDueTogetherTravelTogether(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		store := &renewals{Store: w.faulty, perKey: map[string]int{}}
		h := newHolder(t, store, holder.Config{Owner: "r1", TTL: ttl, Clock: lease.NewSystemClock()})
		acquireMany(t, h, 2500)
		time.Sleep(3 * ttl)
		h.Close()
		total, most := 0, 0
		for _, size := range store.sizes {
			total, most = total+size, max(most, size)
		}
		if most > lease.MaxBatchRenew || total < 8*2500 || len(store.sizes) > 100 {
			t.Errorf("%d renewals in %d batches of at most %d", total, len(store.sizes), most)
		}
		want(t, "two requests of one lease at once", store.overlap, false)
		if stats := h.Stats(); int(stats.Renewed) < total || stats.Failed != 0 {
			t.Errorf("%+v", stats)
		}
	})
}

// Each lease of a batch gets its own outcome.
func TestOneLossInABatchIsThatOneOnly(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		store := &renewals{Store: w.faulty, perKey: map[string]int{}}
		h := newHolder(t, store, holder.Config{Owner: "r1", TTL: ttl, Clock: lease.NewSystemClock()})
		leases := acquireMany(t, h, 50)
		lost := &lease.LostError{Record: lease.Record{Key: "shard/7", Epoch: 2}}
		store.mu.Lock()
		store.respond = func(req lease.RenewRequest) error {
			switch req.Key {
			case "shard/7":
				return lost
			case "shard/8":
				return lease.ErrOutcomeUnknown
			}
			return nil
		}
		store.mu.Unlock()
		time.Sleep(window + time.Second)
		for i, l := range leases {
			wanted := "<nil>"
			switch i {
			case 7:
				wanted = "lease_lost, superseded"
			case 8:
				if l.Held() || l.Remaining() != 0 {
					continue // renewed alone, or in a batch: both are right
				}
				wanted = "lease_expired_locally, unreachable"
			}
			want(t, l.Key(), fence(l.Check()), wanted)
		}
	})
}

// A store that answers fewer outcomes than it was asked for has answered none.
type forgetful struct{ lease.Store }

func (f forgetful) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	outcomes, err := f.Store.BatchRenew(ctx, reqs)
	return outcomes[1:], err
}

func TestABatchWithAnOutcomeMissingIsNoAnswer(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := newHolder(t, forgetful{w.faulty}, holder.Config{Owner: "r1", TTL: ttl, Margin: margin, Clock: lease.NewSystemClock()})
		start := time.Now()
		leases := acquireMany(t, h, 10)
		time.Sleep(ttl * 4 / 10)
		for _, l := range leases {
			if l.Remaining() > window-time.Since(start) && w.faulty.Calls(leasetest.Renew) == 0 {
				t.Errorf("%v left", l.Remaining())
			}
		}
		if h.Stats().Failed == 0 {
			t.Error("no renewal has failed")
		}
	})
}
