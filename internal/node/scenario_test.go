package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
)

// An acquire whose caller gave up somewhere between sending and hearing, tried again
// with its request id: one grant, however far the first try got.
func TestRetriedAcquireIsGrantedOnce(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	for i := range 40 {
		req := lease.AcquireRequest{Key: fmt.Sprintf("retried/%d", i), Owner: "o", TTL: time.Minute, RequestID: fmt.Sprintf("attempt-%d", i)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(3000))*time.Microsecond)
		_, err := client.Acquire(ctx, req)
		cancel()
		if err != nil && !errors.Is(err, lease.ErrOutcomeUnknown) && !errors.Is(err, lease.ErrUnavailable) {
			t.Fatalf("the first try: %v", err)
		}
		answer, err := client.Acquire(c.within(time.Minute), req)
		if err != nil || answer.Record.Epoch != 1 {
			t.Fatalf("the retry: epoch %d, %v", answer.Record.Epoch, err)
		}
		page, err := client.History(c.within(time.Minute), lease.HistoryRequest{Key: req.Key})
		if err != nil || len(page.Entries) != 1 {
			t.Fatalf("history: %v, %v", page.Entries, err)
		}
	}
}

// The epoch goes on by every road that a state can take: release, forget, a restart of
// every node, a snapshot that is loaded at start, one that is sent to a node that was
// away.
func TestEpochGoesOnByEveryRoad(t *testing.T) {
	c := newCluster(t, 3)
	c.change = func(_ *node.Config, parts *node.Parts) {
		parts.Tuning.SnapshotEntries, parts.Tuning.SnapshotInterval, parts.Tuning.TrailingEntries = 30, 50*time.Millisecond, 5
	}
	c.startAll()
	away := (c.leader() + 1) % 3
	client := c.dial()
	const key = "for/ever"
	cycle := func(from, to uint64) {
		t.Helper()
		for epoch := from; epoch <= to; epoch++ {
			ctx := c.within(time.Minute)
			answer, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "o", TTL: time.Hour})
			if err != nil || answer.Record.Epoch != epoch {
				t.Fatalf("epoch %d came as %d, %v", epoch, answer.Record.Epoch, err)
			}
			if _, err := client.Forget(ctx, lease.ForgetRequest{Key: key, Owner: "o", Epoch: epoch}); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Release(ctx, lease.ReleaseRequest{Key: key, Owner: "o", Epoch: epoch}); err != nil {
				t.Fatal(err)
			}
		}
	}
	cycle(1, 2)
	c.stop(away)
	cycle(3, 41) // more than the log keeps
	c.start(away)
	c.eventually("the node that was away has the state", func(ctx context.Context) bool {
		answer, err := c.dial(away).Get(ctx, lease.GetRequest{Key: key, Consistency: lease.Stale})
		return err == nil && answer.Record.Epoch == 41 && answer.Record.ForgottenAtEpoch == 41
	})
	cycle(42, 42)
	for i := range c.peers {
		c.stop(i)
	}
	c.startAll()
	cycle(43, 43)
}

// A deadline that passes while nothing can be decided is unknown, or certainly not
// done, and never "failed"; and what was acknowledged before is there after.
func TestNoMajorityNoGrant(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	if _, err := client.Acquire(c.within(time.Minute), lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	leader := c.leader()
	for i := range c.peers {
		if i != leader {
			c.stop(i)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := client.Acquire(ctx, lease.AcquireRequest{Key: "other", Owner: "o", TTL: time.Hour})
	if !errors.Is(err, lease.ErrOutcomeUnknown) && !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("acquire without a majority: %v", err)
	}
	if _, err := client.Get(ctx, lease.GetRequest{Key: "k"}); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("linearizable read without a majority: %v", err)
	}
	stale, err := client.Get(c.within(time.Minute), lease.GetRequest{Key: "k", Consistency: lease.Stale})
	if err != nil || stale.Record.Owner != "o" {
		t.Errorf("stale read without a majority: %v, %v", stale, err)
	}
	if status, err := client.Status(c.within(time.Minute)); err != nil || len(status.Members) != 3 {
		t.Errorf("status without a majority: %+v, %v", status, err)
	}
	for i := range c.peers {
		if i != leader {
			c.start(i)
		}
	}
	c.leader()
	if answer, err := client.Get(c.within(time.Minute), lease.GetRequest{Key: "k"}); err != nil || answer.Record.Epoch != 1 {
		t.Errorf("after the majority is back: %v, %v", answer, err)
	}
}

func TestADirectoryIsUsedByOneNodeOnly(t *testing.T) {
	c := startCluster(t, 1)
	other := newCluster(t, 1)
	other.dir = c.dir
	if n, err := other.open(c.within(time.Minute), 0); err == nil {
		_ = n.Close()
		t.Error("a second node opened the directory")
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	c := startCluster(t, 1)
	other := newCluster(t, 1)
	taken := c.apis[0]
	other.change = func(cfg *node.Config, _ *node.Parts) { cfg.APIAddr = taken }
	if n, err := other.open(c.within(time.Minute), 0); err == nil {
		_ = n.Close()
		t.Error("two nodes listen on one port")
	} else if msg := err.Error(); !strings.Contains(msg, "api-addr") || !strings.Contains(msg, taken) {
		t.Errorf("%v", err)
	}
}
