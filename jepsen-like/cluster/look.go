package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

const (
	// askTimeout bounds a look at who leads, which a schedule waits for.
	askTimeout = time.Second
	// probeKey is read to see whether a node serves. Nobody acquires it.
	probeKey = "probe"
	// pause is between two looks at a node that does not serve.
	pause = 50 * time.Millisecond
)

// Leader implements [nemesis.Target]: it returns whom most of the nodes name that answer
// within a second.
func (c *Cluster) Leader(ctx context.Context) (node int, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	named := make([]string, len(c.members))
	var asked sync.WaitGroup
	for i, m := range c.members {
		if p := m.running(); p != nil && !p.stopped {
			asked.Go(func() { named[i] = askLeader(ctx, m.api) })
		}
	}
	asked.Wait()
	votes := map[string]int{}
	leader := ""
	for _, id := range named {
		if id == "" {
			continue
		}
		if votes[id]++; votes[id] > votes[leader] {
			leader = id
		}
	}
	node = slices.Index(c.Names(), leader)
	return max(node, 0), node >= 0
}

// askLeader returns the leader that a node names in a stale read, which it answers from
// what it has.
func askLeader(ctx context.Context, addr string) string {
	conn, err := grpc.NewClient(addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		return ""
	}
	defer conn.Close()
	req := wire.GetToProto(lease.GetRequest{Key: probeKey, Consistency: lease.Stale})
	resp, err := leasepb.NewLeaseServiceClient(conn).Get(ctx, req)
	if err != nil {
		return ""
	}
	return resp.GetLeader().GetId()
}

// Ready waits until each node serves a linearizable read to a client, and returns an
// error when ctx ends or a node has ended by itself.
func (c *Cluster) Ready(ctx context.Context) error {
	faults := make([]error, len(c.members))
	var waiting sync.WaitGroup
	for i, m := range c.members {
		waiting.Go(func() { faults[i] = c.readyOne(ctx, m) })
	}
	waiting.Wait()
	return errors.Join(faults...)
}

func (c *Cluster) readyOne(ctx context.Context, m *member) error {
	client, err := holder.Dial([]string{c.network.clients[m.index].Addr()}, holder.StayWithEndpoints())
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		if m.running() == nil {
			return fmt.Errorf("%s has ended: %s", m.id, lastLines(m.log))
		}
		try, cancel := context.WithTimeout(ctx, askTimeout)
		_, err := client.Get(try, lease.GetRequest{Key: probeKey})
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not serve: %w", m.id, err)
		case <-time.After(pause):
		}
	}
}

// Digests returns the digests of the nodes' states that they tell now, each once. Nodes
// that do not answer in time tell none.
func (c *Cluster) Digests(ctx context.Context) []history.Digest {
	ctx, cancel := context.WithTimeout(ctx, 2*askTimeout)
	defer cancel()
	statuses := make([]holder.Status, len(c.members))
	var asked sync.WaitGroup
	for i, m := range c.members {
		if m.running() == nil {
			continue
		}
		asked.Go(func() {
			client, err := holder.Dial([]string{m.api}, holder.StayWithEndpoints())
			if err != nil {
				return
			}
			defer client.Close()
			statuses[i], _ = client.Status(ctx) // one that does not answer tells nothing
		})
	}
	asked.Wait()
	var digests []history.Digest
	seen := map[history.Digest]bool{}
	for _, status := range statuses {
		for id, sum := range status.Digests {
			d := history.Digest{Node: id, Index: status.DigestIndex, Sum: sum}
			if !seen[d] {
				seen[d] = true
				digests = append(digests, d)
			}
		}
	}
	return digests
}
