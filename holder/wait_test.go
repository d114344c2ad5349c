package holder_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// liveNode runs a node on a store whose clock goes by itself, with k held.
func liveNode(t *testing.T) (*backend, lease.Store) {
	t.Helper()
	store := leasetest.NewMemory(lease.NewSystemClock())
	if _, err := store.Acquire(t.Context(), lease.AcquireRequest{Key: "k", Owner: "first", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return startNode(t, "a", store), store
}

func releaseFirst(t *testing.T, store lease.Store) {
	t.Helper()
	if _, err := store.Release(t.Context(), lease.ReleaseRequest{Key: "k", Owner: "first", Epoch: 1}); err != nil {
		t.Error(err)
	}
}

// A wait is a row of polls of one request id, each sent before the one before ends, at
// least four in a ttl, so that the place is never without one.
func TestAWaitIsARowOfPolls(t *testing.T) {
	node, store := liveNode(t)
	var mu sync.Mutex
	out, least := 0, 2
	began := time.Now()
	node.fault = func(_ context.Context, n int, serve serveCall) (any, error) {
		mu.Lock()
		out++
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			if out--; time.Since(began) < 3*time.Second {
				least = min(least, out)
			}
		}()
		return serve()
	}
	time.AfterFunc(4*time.Second, func() { releaseFirst(t, store) })
	answer, err := dial(t, node).Acquire(within(t, long), lease.AcquireRequest{Key: "k", Owner: "o", TTL: 4 * time.Second, Wait: long})
	if err != nil || answer.Record.Epoch != 2 {
		t.Fatalf("%v, %v", answer, err)
	}
	mu.Lock()
	defer mu.Unlock()
	node.set(func() {
		if n := len(node.ids); n < 5 || n > 9 {
			t.Errorf("%d polls in 4 s, a ttl", n)
		}
		for _, id := range node.ids {
			if id == "" || id != node.ids[0] {
				t.Errorf("request ids %q", node.ids)
			}
		}
	})
	if least < 1 {
		t.Error("a poll ended without another on its way")
	}
}

// The lease is counted from the sending of the poll that was answered: not from a later
// one, which is on its way too, and not from the beginning of the wait.
func TestAWaitIsCountedFromTheAnsweredPoll(t *testing.T) {
	node, store := liveNode(t)
	const asked, late = 2 * time.Second, 600 * time.Millisecond
	var granted sync.Once
	node.fault = func(_ context.Context, n int, serve serveCall) (any, error) {
		resp, err := serve()
		if err == nil {
			granted.Do(func() { time.Sleep(late) }) // meanwhile a later poll is sent
		}
		return resp, err
	}
	h := newHolder(t, dial(t, node), holder.Config{Owner: "o", TTL: asked, Margin: asked / 10})
	time.AfterFunc(3*time.Second, func() { releaseFirst(t, store) })
	l, err := h.Await(within(t, long), "k")
	if err != nil {
		t.Fatal(err)
	}
	left := l.Remaining()
	record, err := store.Get(t.Context(), lease.GetRequest{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if left <= 0 || left > record.Remaining-asked/10 {
		t.Errorf("%v left of a lease that has %v at the store", left, record.Remaining)
	}
}

func TestAWaitThatIsOver(t *testing.T) {
	node, _ := liveNode(t)
	var told notes
	ctx := lease.OnWaiting(within(t, long), func(held lease.HeldError) { told.add(held.Record.Owner) })
	began := time.Now()
	_, err := dial(t, node).Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute, Wait: 300 * time.Millisecond})
	held, ok := errors.AsType[*lease.HeldError](err)
	if took := time.Since(began); !ok || held.Place != 1 || took < 280*time.Millisecond || took > 5*time.Second {
		t.Errorf("after %v: %v", took, err)
	}
	want(t, "told", told.String(), "first")
}

// A deadline ends the wait so early that the refusal is known; a cancellation does not.
func TestAWaitWhoseContextEnds(t *testing.T) {
	node, _ := liveNode(t)
	client := dial(t, node)
	_, err := client.Acquire(within(t, 500*time.Millisecond), lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute, Wait: long})
	wantCode(t, "with a deadline", err, lease.CodeHeld)
	ctx, cancel := context.WithCancel(t.Context())
	before := node.count()
	go func() {
		defer cancel()
		for node.count() < before+2 { // the second stays
			time.Sleep(time.Millisecond)
		}
	}()
	_, err = client.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute, Wait: long})
	wantCode(t, "cancelled", err, lease.CodeOutcomeUnknown)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// When the leader goes, the wait goes on at another, under the same request id; when
// the answer is that a grant has ended unheard, under a new one.
func TestAWaitOutlivesItsLeader(t *testing.T) {
	store := leasetest.NewMemory(lease.NewSystemClock())
	if _, err := store.Acquire(t.Context(), lease.AcquireRequest{Key: "k", Owner: "first", TTL: time.Minute}); err != nil {
		t.Fatal(err)
	}
	a, b := startNode(t, "a", store), startNode(t, "b", store)
	b.leader = a.leader
	inLine := make(chan struct{}, 8)
	ctx := lease.OnWaiting(within(t, long), func(lease.HeldError) { inLine <- struct{}{} })
	var lost atomic.Bool
	b.fault = func(_ context.Context, n int, serve serveCall) (any, error) {
		if !lost.Swap(true) {
			return nil, wire.StatusOf(&lease.LostError{Record: lease.Record{Key: "k", Owner: "o", Epoch: 1}}, wire.Leader{}).Err()
		}
		return serve()
	}
	done := make(chan error, 1)
	go func() {
		answer, err := dial(t, a, b).Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute, Wait: long})
		if err == nil && answer.Record.Epoch != 2 {
			err = errors.New("another epoch")
		}
		done <- err
	}()
	<-inLine
	b.set(func() { b.leader.ID, b.leader.APIAddr = "b", b.addr })
	a.server.Stop()
	for b.count() < 3 {
		time.Sleep(time.Millisecond)
	}
	releaseFirst(t, store)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	a.set(func() {
		b.set(func() {
			if b.ids[0] != a.ids[0] || b.ids[len(b.ids)-1] == a.ids[0] {
				t.Errorf("request ids %q, then %q", a.ids, b.ids)
			}
		})
	})
}

// The wait ends at its end, also if the last that is heard of it is that an old poll has
// had no answer.
func TestAWaitEndsThoughAnOldPollEndsLast(t *testing.T) {
	node, _ := liveNode(t)
	began := time.Now()
	node.fault = func(ctx context.Context, n int, serve serveCall) (any, error) {
		switch {
		case n == 1: // the leader hears of it and answers no more
			<-ctx.Done()
			return nil, ctx.Err()
		case time.Since(began) < 2*time.Second:
			return nil, wire.StatusOf(lease.ErrUnavailable, wire.Leader{}).Err()
		}
		return serve()
	}
	ctx := within(t, long)
	_, err := dial(t, node).Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: 10 * time.Second, Wait: time.Second})
	if lease.CodeOf(err) != lease.CodeHeld || ctx.Err() != nil {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
}

// However many wait, all are in line, and the other calls of a process are served.
func TestPollsDoNotHoldUpOthers(t *testing.T) {
	node, _ := liveNode(t)
	client := dial(t, node)
	ctx, cancel := context.WithCancel(t.Context())
	var joined, ended sync.WaitGroup
	for i := range 1100 { // a node takes 1,000 calls from one connection
		joined.Add(1)
		ended.Go(func() {
			var once sync.Once
			ctx := lease.OnWaiting(ctx, func(lease.HeldError) { once.Do(joined.Done) })
			_, _ = client.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: strings.Repeat("o", i%200+1), TTL: time.Minute, Wait: long})
			once.Do(joined.Done)
		})
	}
	joined.Wait()
	acquired(t, client, lease.AcquireRequest{Key: "another", Owner: "o", TTL: time.Minute})
	cancel()
	ended.Wait()
}

func TestAwaitTellsWhoIsInTheWay(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		first := w.hold("r1", lease.NewSystemClock())
		var told notes
		ctx := lease.OnWaiting(t.Context(), func(held lease.HeldError) { told.add(held.Record.Owner) })
		time.AfterFunc(time.Minute, func() { _ = first.Release(context.Background()) })
		_, err := w.holder("r2", lease.NewSystemClock()).Await(ctx, aKey)
		succeed(t, "await", err)
		want(t, "told", told.String(), "r1")
	})
}
