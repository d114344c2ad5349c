package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// Each of 200 who wait gets its turn, once; a release and the next grant are one entry,
// and nothing that is refused is written.
func TestEveryWaiterGetsItsTurn(t *testing.T) {
	c := startCluster(t, 3)
	client, follower := c.dial(), c.follow()
	first, err := client.Acquire(c.within(time.Minute), lease.AcquireRequest{Key: "k", Owner: "first", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	const n = 200
	var holders atomic.Int32
	var turns, joined sync.WaitGroup
	for i := range n {
		store := client
		if i%2 == 1 {
			store = follower
		}
		joined.Add(1)
		turns.Go(func() {
			var once sync.Once
			ctx := lease.OnWaiting(c.within(time.Minute), func(lease.HeldError) { once.Do(joined.Done) })
			owner := fmt.Sprint("w", i)
			answer, err := store.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: owner, TTL: time.Minute, Wait: time.Minute})
			once.Do(joined.Done)
			if err != nil {
				t.Errorf("%s: %v", owner, err)
				return
			}
			if holders.Add(1) > 1 {
				t.Errorf("two hold the key")
			}
			holders.Add(-1)
			if _, err := store.Release(ctx, lease.ReleaseRequest{Key: "k", Owner: owner, Epoch: answer.Record.Epoch}); err != nil {
				t.Errorf("%s: release: %v", owner, err)
			}
		})
	}
	joined.Wait()
	if _, err := client.Release(c.within(time.Minute), lease.ReleaseRequest{Key: "k", Owner: "first", Epoch: first.Record.Epoch}); err != nil {
		t.Fatal(err)
	}
	turns.Wait()
	page, err := client.History(c.within(time.Minute), lease.HistoryRequest{Key: "k", PageSize: lease.MaxPageSize})
	if err != nil {
		t.Fatal(err)
	}
	granted := map[string]int{}
	var before lease.Entry
	for _, e := range page.Entries {
		if e.Op == lease.OpAcquire {
			granted[e.Owner]++
			if before.Op == lease.OpRelease && e.Index != before.Index {
				t.Errorf("epoch %d came at %d, its release at %d", e.Epoch, e.Index, before.Index)
			}
		}
		before = e
	}
	if last := before.Epoch; last != n+1 {
		t.Errorf("%d grants for %d waiters", last-1, n)
	}
	for owner, times := range granted {
		if times != 1 {
			t.Errorf("%s was granted %d times", owner, times)
		}
	}
}

// Nobody starves while the leader goes again and again: whoever waits joins the next
// one's line by itself.
func TestNobodyStarvesThroughLeaderChanges(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	const n, changes = 50, 20
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	turns := make([]int, n)
	var latest atomic.Pointer[holder.Lease]
	var waiters sync.WaitGroup
	for i := range n {
		waiters.Go(func() {
			h, err := holder.New(client, holder.Config{Owner: fmt.Sprint("w", i), TTL: 4 * time.Second})
			if err != nil {
				t.Error(err)
				return
			}
			defer h.Close()
			for ctx.Err() == nil {
				l, err := h.Await(ctx, "k")
				if err != nil {
					if ctx.Err() == nil {
						t.Errorf("%d: %v", i, err)
					}
					return
				}
				if before := latest.Swap(l); before != nil && before.Held() && l.Held() {
					t.Error("two hold the key")
				}
				if l.Held() {
					mu.Lock()
					turns[i]++
					mu.Unlock()
				}
				if err := l.Release(ctx); err != nil && ctx.Err() == nil {
					t.Logf("%d: release: %v", i, err)
				}
			}
		})
	}
	all := func() int {
		mu.Lock()
		defer mu.Unlock()
		least := turns[0]
		for _, n := range turns {
			least = min(least, n)
		}
		return least
	}
	for range changes {
		leader := c.leader()
		c.stop(leader)
		c.start(leader)
	}
	after := all()
	c.eventually("everyone has had another turn", func(context.Context) bool { return all() > after })
	cancel()
	waiters.Wait()
	t.Logf("turns: %v", turns)
}

// A poll that is not ours: the wire, at every node.
func TestPollsOnTheWire(t *testing.T) {
	c := startCluster(t, 3)
	if _, err := c.dial().Acquire(c.within(time.Minute), lease.AcquireRequest{Key: "k", Owner: "first", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	poll := func(change func(*leasepb.AcquireRequest)) *leasepb.AcquireRequest {
		req := &leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 4000, RequestId: []byte("r"), WaitMs: 50}
		change(req)
		return req
	}
	for i := range c.peers {
		client := leasepb.NewLeaseServiceClient(c.raw(i))
		for _, bad := range []struct {
			name, field string
			req         *leasepb.AcquireRequest
		}{
			{"a long poll", "wait", poll(func(r *leasepb.AcquireRequest) { r.WaitMs = 1001 })},
			{"a poll of more than 10 s", "wait", poll(func(r *leasepb.AcquireRequest) { r.TtlMs, r.WaitMs = 60_000, 10_001 })},
			{"a negative poll", "wait", poll(func(r *leasepb.AcquireRequest) { r.WaitMs = -1 })},
			{"a poll that wraps", "wait", poll(func(r *leasepb.AcquireRequest) { r.WaitMs = 1<<58 + 50 })},
			{"no request id", "request_id", poll(func(r *leasepb.AcquireRequest) { r.RequestId = nil })},
			{"too long waited", "waited", poll(func(r *leasepb.AcquireRequest) { r.WaitedMs = 600_001 })},
			{"waited without a wait", "waited", poll(func(r *leasepb.AcquireRequest) { r.WaitMs, r.WaitedMs = 0, 1 })},
		} {
			_, err := client.Acquire(c.within(time.Minute), bad.req)
			if why, field, _ := reason(err); why != string(lease.CodeInvalid) || field != bad.field {
				t.Errorf("%s at %s: %v (reason %q, field %q)", bad.name, c.peers[i].ID, err, why, field)
			}
		}
		began := time.Now()
		_, err := client.Acquire(c.within(time.Minute), poll(func(*leasepb.AcquireRequest) {}))
		why, _, leader := reason(err)
		if took := time.Since(began); why != string(lease.CodeHeld) || leader.GetId() == "" || took < 50*time.Millisecond {
			t.Errorf("at %s, after %v: %v", c.peers[i].ID, took, err)
		}
		if _, err := c.dial(i).Release(c.within(time.Minute), lease.ReleaseRequest{Key: "k", Owner: "first", Epoch: 1, To: "nobody"}); lease.CodeOf(err) != lease.CodeNotWaiting {
			t.Errorf("a release to nobody at %s: %v", c.peers[i].ID, err)
		}
	}
}

// A process whose connection goes while it waits leaves the line at once, also through
// a follower.
func TestWhoGoesLeavesTheLine(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	if _, err := client.Acquire(c.within(time.Minute), lease.AcquireRequest{Key: "k", Owner: "first", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	gone, err := holder.Dial([]string{c.apis[(c.leader()+1)%3]}, holder.StayWithEndpoints())
	if err != nil {
		t.Fatal(err)
	}
	inLine := make(chan struct{}, 8)
	left := make(chan error, 1)
	go func() {
		ctx := lease.OnWaiting(c.within(time.Minute), func(lease.HeldError) { inLine <- struct{}{} })
		_, err := gone.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "gone", TTL: 40 * time.Second, Wait: time.Minute})
		left <- err
	}()
	<-inLine
	_ = gone.Close()
	if err := <-left; err == nil {
		t.Error("granted to a closed client")
	}
	c.eventually("the line is empty", func(ctx context.Context) bool {
		_, err := client.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "next", TTL: time.Minute, Wait: 20 * time.Millisecond})
		held, ok := errors.AsType[*lease.HeldError](err)
		return ok && held.Place == 1
	})
}
