package e2e_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// A minute of it: go test ./holder/e2e -run Leader -args -kills 20
var kills = flag.Int("kills", 4, "how often the leader is killed")

func TestHoldersStopOnTimeWithoutAStoreAndResumeWithIt(t *testing.T) {
	c := startCluster(t)
	const ttl, margin = 8 * time.Second, 5 * time.Second
	h := c.holder(c.dial(), holder.Config{Owner: "r1", TTL: ttl, Margin: margin})
	var leases []*holder.Lease
	for i := range 20 {
		l, err := h.Acquire(c.within(), fmt.Sprintf("k%d", i))
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, l)
	}
	c.signalAll(syscall.SIGSTOP)
	stopped := time.Now()
	for _, l := range leases {
		<-l.Context().Done()
		if l.Held() {
			t.Errorf("%s: the context ended before the lease", l.Key())
		}
	}
	took := time.Since(stopped)
	c.signalAll(syscall.SIGCONT)
	if took > ttl-margin+time.Second {
		t.Errorf("they stopped only %v after the last renewal", took)
	}
	for _, l := range leases {
		c.eventually("the lease is resumed", func(context.Context) bool { return l.Held() })
		if got := c.history(l.Key()); got != "r1:1" {
			t.Errorf("history of %s: %s", l.Key(), got)
		}
	}
}

// tenure is how long an owner held a key, as the owner itself saw it.
type tenure struct {
	key      string
	epoch    uint64
	from, to time.Duration
}

// tenures are those of all owners, on one clock.
type tenures struct {
	clock lease.Clock
	mu    sync.Mutex
	list  []tenure
}

func (ts *tenures) add(l *holder.Lease, from time.Duration) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.list = append(ts.list, tenure{l.Key(), l.Epoch(), from, ts.clock.Monotonic()})
}

// check looks for two owners of one key at one time, and for epochs granted twice.
func (ts *tenures) check(t *testing.T) {
	t.Helper()
	seen := map[string]tenure{}
	for _, a := range ts.list {
		id := fmt.Sprint(a.key, "@", a.epoch)
		if b, twice := seen[id]; twice {
			t.Errorf("granted twice: %+v and %+v", a, b)
		}
		seen[id] = a
	}
	for i, a := range ts.list {
		for _, b := range ts.list[:i] {
			if a.key == b.key && a.from < b.to && b.from < a.to {
				t.Errorf("two owners at one time: %+v and %+v", a, b)
			}
		}
	}
	t.Logf("%d tenures", len(ts.list))
}

// Leaders die, again and again, under 200 holders: 150 that keep their keys, and 50 that
// hand 25 keys to and fro.
func TestNoHolderNoticesThatLeadersAreKilled(t *testing.T) {
	const keepers, pairs, perClient = 150, 25, 10
	c := startCluster(t)
	var clients []*holder.Client
	for range (keepers + 2*pairs) / perClient {
		clients = append(clients, c.dial())
	}
	newHolder := func(i int) *holder.Holder {
		return c.holder(clients[i/perClient], holder.Config{
			Owner: fmt.Sprintf("r%d", i), TTL: 10 * time.Second,
			OnChange: func(change holder.Change) {
				if change.State == holder.StateFenced || change.State == holder.StateLost {
					t.Errorf("%s: %v", change.Lease.Key(), change.Fence)
				}
			},
		})
	}
	ts := &tenures{clock: lease.NewSystemClock()}
	var kept []*holder.Lease
	for i := range keepers {
		l, err := newHolder(i).Acquire(c.within(), fmt.Sprintf("kept/%d", i))
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, l)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var contenders sync.WaitGroup
	for i := range 2 * pairs {
		h := newHolder(keepers + i)
		contenders.Go(func() { takeTurns(ctx, t, h, fmt.Sprintf("shared/%d", i/2), ts) })
	}
	killLeaders(c, *kills)
	cancel()
	contenders.Wait()
	ts.check(t)
	for _, l := range kept {
		if err := l.Check(); err != nil || l.Epoch() != 1 {
			t.Errorf("%s at %d: %v", l.Key(), l.Epoch(), err)
		}
	}
}

// takeTurns holds key for a while, again and again.
func takeTurns(ctx context.Context, t *testing.T, h *holder.Holder, key string, ts *tenures) {
	for ctx.Err() == nil {
		err := h.Run(ctx, key, func(ctx context.Context, l *holder.Lease) error {
			from := ts.clock.Monotonic()
			select {
			case <-ctx.Done():
			case <-time.After(300 * time.Millisecond):
			}
			if l.Check() == nil {
				ts.add(l, from)
			}
			return nil
		})
		if err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// killLeaders kills whoever leads, two seconds after the last one was replaced.
func killLeaders(c *cluster, times int) {
	c.t.Helper()
	for range times {
		leader := c.leader()
		c.signal(leader, syscall.SIGKILL)
		began := time.Now()
		c.restart(leader)
		c.leader()
		c.t.Logf("%s was killed; answered again after %v", leader, time.Since(began).Round(time.Millisecond))
		select {
		case <-time.After(2 * time.Second):
		case <-c.t.Context().Done():
		}
	}
}
