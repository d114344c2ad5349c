package node_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// The suites that any lease.Store and lease.Watcher have to pass, against real nodes: one, three, and
// three of which a follower is asked.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes int
		ask   func(*cluster) *holder.Client
	}{
		{"one node", 1, func(c *cluster) *holder.Client { return c.dial() }},
		{"three nodes", 3, func(c *cluster) *holder.Client { return c.dial() }},
		{"three nodes through a follower", 3, func(c *cluster) *holder.Client { return c.follow() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := newCluster(t, c.nodes)
			clock := leasetest.NewManualClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
			cluster.clock = clock
			cluster.change = func(_ *node.Config, parts *node.Parts) { parts.Feed = feed.Bounds{Events: keptEvents} }
			cluster.startAll()
			store := c.ask(cluster)
			subject := leasetest.Subject{Store: store, Retries: true, Watcher: store, Advance: advancer(store, clock), Compact: cluster.compacter(store)}
			for name, run := range map[string]func(context.Context, leasetest.Subject) []leasetest.Failure{"as a store": leasetest.Run, "as a watcher": leasetest.RunWatch} {
				t.Run(name, func(t *testing.T) {
					for _, failure := range run(cluster.within(5*time.Minute), subject) {
						t.Errorf("%s: %v", failure.Check, failure.Err)
					}
				})
			}
		})
	}
}

// keptEvents is how many events the nodes of these tests keep: more than any check makes.
const keptEvents = 500

// compacter has the nodes give up the events that they keep, for others, all of which
// every node has when it returns.
func (c *cluster) compacter(store lease.Store) func(context.Context) error {
	nodes := make([]*holder.Client, len(c.peers))
	for i := range nodes {
		nodes[i] = c.only(i)
	}
	return func(ctx context.Context) error {
		var fillers sync.WaitGroup
		failed := make([]error, 50)
		for i := range failed {
			fillers.Go(func() { failed[i] = fill(ctx, store, fmt.Sprintf("filler/%d", i), keptEvents/len(failed)/2+1) })
		}
		fillers.Wait()
		for _, node := range nodes { // a watch begins where the leader is
			for _, err := range node.Watch(ctx, lease.WatchRequest{}) {
				failed = append(failed, err)
				break
			}
		}
		return errors.Join(failed...)
	}
}

// fill has that many grants of key, and their releases, happen.
func fill(ctx context.Context, store lease.Store, key string, grants int) error {
	for range grants {
		a, err := store.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "filler", TTL: lease.MaxTTL})
		if err != nil {
			return err
		}
		if _, err := store.Release(ctx, lease.ReleaseRequest{Key: key, Owner: "filler", Epoch: a.Record.Epoch}); err != nil {
			return err
		}
	}
	return nil
}

// follow returns a client that only knows a follower.
func (c *cluster) follow() *holder.Client {
	c.t.Helper()
	return c.only((c.leader() + 1) % len(c.peers))
}

// only returns a client that only knows node i, and does not follow its advice.
func (c *cluster) only(i int) *holder.Client {
	c.t.Helper()
	client, err := holder.Dial([]string{c.apis[i]}, holder.StayWithEndpoints())
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// advancer moves the cluster clock by exactly d. The nodes' clock is the manual one,
// but the cluster's loses what passes while leaders change, and is moved on by that.
func advancer(store lease.Store, clock *leasetest.ManualClock) func(context.Context, time.Duration) error {
	reads := 0
	now := func(ctx context.Context) (lease.Instant, error) {
		reads++
		answer, err := store.Acquire(ctx, lease.AcquireRequest{Key: fmt.Sprintf("clock/%d", reads), Owner: "clock", TTL: lease.MinTTL})
		return answer.Now, err
	}
	return func(ctx context.Context, d time.Duration) error {
		before, err := now(ctx)
		if err != nil {
			return err
		}
		for end := before.Add(d); ; {
			at, err := now(ctx)
			if err != nil || at == end {
				return err
			}
			if at > end {
				return fmt.Errorf("the cluster clock is at %d, past %d", at, end)
			}
			clock.Advance(end.Sub(at))
		}
	}
}
