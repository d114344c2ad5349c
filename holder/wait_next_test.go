package holder_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// A poll that ends early though it is the newest has been replaced by one that the store
// took for newer: the next is sent soon, so that the place is not without one for long.
func TestAPollThatWasReplacedIsFollowedSoon(t *testing.T) {
	node, store := liveNode(t)
	third := make(chan struct{})
	node.fault = func(_ context.Context, n int, serve serveCall) (any, error) {
		switch n {
		case 2:
			return nil, wire.StatusOf(&lease.HeldError{Record: lease.Record{Key: "k", Owner: "first", Epoch: 1}, Place: 1}, wire.Leader{}).Err()
		case 3:
			close(third)
		}
		return serve()
	}
	waitOnAfter(t, dial(t, node), store, third)
}

// waitOnAfter has client wait for "k", which is free once soon is closed; that has to be
// sooner than the next poll would be sent by itself, which is after 7.5 s.
func waitOnAfter(t *testing.T, client *holder.Client, store lease.Store, soon chan struct{}) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, err := client.Acquire(within(t, long), lease.AcquireRequest{Key: "k", Owner: "o", TTL: 10 * time.Minute, Wait: long})
		done <- err
	}()
	select {
	case <-soon:
	case <-time.After(7 * time.Second):
		t.Error("the next poll is not sent")
	}
	releaseFirst(t, store)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// When an older poll hears that the attempt was granted, unheard, and has ended, the wait
// goes on under a new request id soon, though a newer poll under the old one is out.
func TestAWaitGoesOnUnderANewRequestIDSoon(t *testing.T) {
	node, store := liveNode(t)
	client := dial(t, node)
	// With its connection open, the polls come in the order in which they are sent.
	_, err := client.Acquire(within(t, long), lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute, Wait: 20 * time.Millisecond})
	wantCode(t, "a short wait", err, lease.CodeHeld)
	before := node.count()
	second, third := make(chan struct{}), make(chan struct{})
	fault := func(ctx context.Context, n int, serve serveCall) (any, error) {
		switch n - before {
		case 1:
			<-second
			return nil, wire.StatusOf(&lease.LostError{Record: lease.Record{Key: "k", Owner: "first", Epoch: 1}}, wire.Leader{}).Err()
		case 2:
			close(second)
			<-ctx.Done()
			return nil, ctx.Err()
		case 3:
			close(third)
		}
		return serve()
	}
	node.set(func() { node.fault = fault })
	waitOnAfter(t, client, store, third)
	node.set(func() {
		if ids := node.ids[before:]; len(ids) < 3 || ids[0] != ids[1] || ids[2] == ids[0] {
			t.Errorf("request ids %q", ids)
		}
	})
}
