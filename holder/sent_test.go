package holder_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// hangOnce has the next call of b hang until it is given up, and later ones served.
func hangOnce(b *backend) {
	b.set(func() {
		var given atomic.Bool
		b.fault = func(ctx context.Context, _ int, serve serveCall) (any, error) {
			if given.CompareAndSwap(false, true) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return serve()
		}
	})
}

// A client tries on by itself. The lease counts from the try that was answered.
func TestALeaseCountsFromTheTryThatWasAnswered(t *testing.T) {
	const ttl, window, firstTry = 3 * time.Second, 2400 * time.Millisecond, time.Second
	nodes, _ := startCluster(t, 1)
	client := dial(t, nodes[0])
	h := newHolder(t, client, holder.Config{Owner: "r1", TTL: ttl})
	hangOnce(nodes[0])
	start := time.Now()
	l := acquire(t, h, aKey)
	if took := time.Since(start); took < firstTry {
		t.Fatalf("answered after %v: no try was given up", took)
	}
	if left := l.Remaining(); left < window-firstTry/2 {
		t.Errorf("%v left of %v: counted from the first try", left, window)
	}
	hangOnce(nodes[0])
	succeed(t, "renew", l.Renew(within(t, time.Minute)))
	if left := l.Remaining(); left < window-200*time.Millisecond {
		t.Errorf("%v left of %v after the renewal: counted from the first try", left, window)
	}
}

// What stands between may try as it likes, so that the lease counts from the call.
func TestALeaseFromAnotherStoreCountsFromTheCall(t *testing.T) {
	const ttl, window, firstTry = 3 * time.Second, 2400 * time.Millisecond, time.Second
	nodes, _ := startCluster(t, 1)
	h := newHolder(t, leasetest.NewFaulty(dial(t, nodes[0])), holder.Config{Owner: "r1", TTL: ttl})
	hangOnce(nodes[0])
	if left := acquire(t, h, aKey).Remaining(); left > window-firstTry {
		t.Errorf("%v left of %v", left, window)
	}
}

// A node that takes renewals and answers none, for ever: there are others.
func TestALeaseIsKeptThroughAnotherNode(t *testing.T) {
	const ttl = 3 * time.Second
	nodes, _ := startCluster(t, 2)
	h := newHolder(t, dial(t, nodes...), holder.Config{Owner: "r1", TTL: ttl})
	l := acquire(t, h, aKey)
	work := l.Context()
	nodes[0].set(func() {
		nodes[0].fault = func(ctx context.Context, _ int, _ serveCall) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
	select {
	case <-work.Done():
		t.Errorf("%v", context.Cause(work))
	case <-time.After(ttl * 3 / 2):
	}
	succeed(t, "check", l.Check())
}

// Through the wire, many leases at once.
func TestManyLeasesThroughAClient(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	client := dial(t, nodes[0])
	h := newHolder(t, client, holder.Config{Owner: "r1", TTL: time.Second, Margin: 100 * time.Millisecond})
	leases := acquireMany(t, h, 100)
	for deadline := time.Now().Add(time.Minute); h.Stats().Renewed < 300; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v", h.Stats())
		}
	}
	for _, l := range leases {
		succeed(t, "check", l.Check())
	}
	if stats := h.Stats(); stats.Requests > 100+stats.Renewed/5 {
		t.Errorf("%+v", stats)
	}
	succeed(t, "release", leases[0].Release(within(t, time.Minute)))
	answer, err := client.Get(within(t, time.Minute), lease.GetRequest{Key: leases[0].Key()})
	if err != nil || answer.Remaining != 0 {
		t.Errorf("%v, %v", answer, err)
	}
}
