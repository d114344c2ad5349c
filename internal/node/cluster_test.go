package node_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a cluster of real nodes in this process: real sockets, real bbolt, real
// gRPC.
type cluster struct {
	t     testing.TB
	clock lease.Clock
	dir   string
	peers []node.Peer
	apis  []string
	// change, if set, alters what a node is opened with.
	change func(cfg *node.Config, parts *node.Parts)

	mu        sync.Mutex
	listeners map[string]net.Listener // opened to know their ports
	nodes     map[string]*node.Node
}

// newCluster returns a cluster of n nodes, n1 and so on, none of them started.
func newCluster(t testing.TB, n int) *cluster {
	t.Helper()
	c := &cluster{t: t, clock: lease.NewSystemClock(), dir: t.TempDir(), listeners: map[string]net.Listener{}, nodes: map[string]*node.Node{}}
	for i := range n {
		c.peers = append(c.peers, node.Peer{ID: fmt.Sprintf("n%d", i+1), Addr: c.reserve()})
		c.apis = append(c.apis, c.reserve())
	}
	t.Cleanup(c.close)
	return c
}

// startCluster returns a cluster of n running nodes with a leader.
func startCluster(t testing.TB, n int) *cluster {
	t.Helper()
	c := newCluster(t, n)
	c.startAll()
	return c
}

func (c *cluster) reserve() string {
	c.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		c.t.Fatal(err)
	}
	c.listeners[ln.Addr().String()] = ln
	return ln.Addr().String()
}

func (c *cluster) listen(addr string) (net.Listener, error) {
	c.mu.Lock()
	ln := c.listeners[addr]
	delete(c.listeners, addr)
	c.mu.Unlock()
	if ln != nil {
		return ln, nil
	}
	return net.Listen("tcp", addr)
}

func (c *cluster) config(i int) node.Config {
	return node.Config{ID: c.peers[i].ID, DataDir: filepath.Join(c.dir, c.peers[i].ID), PeerAddr: c.peers[i].Addr, APIAddr: c.apis[i], Cluster: c.peers}
}

func (c *cluster) open(ctx context.Context, i int) (*node.Node, error) {
	cfg, parts := c.config(i), node.SystemParts(hclog.NewNullLogger())
	parts.Clock, parts.Listen = c.clock, c.listen
	if c.change != nil {
		c.change(&cfg, &parts)
	}
	return node.Open(ctx, cfg, parts)
}

// start starts node i and fails the test if it cannot.
func (c *cluster) start(i int) {
	c.t.Helper()
	n, err := c.open(c.within(time.Minute), i)
	if err != nil {
		c.t.Errorf("start %s: %v", c.peers[i].ID, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes[c.peers[i].ID] = n
}

func (c *cluster) startAll() {
	c.t.Helper()
	var started sync.WaitGroup
	for i := range c.peers {
		started.Go(func() { c.start(i) })
	}
	started.Wait()
	if c.t.Failed() {
		c.t.FailNow()
	}
	c.leader()
}

// stop closes node i.
func (c *cluster) stop(i int) {
	c.t.Helper()
	c.mu.Lock()
	n := c.nodes[c.peers[i].ID]
	delete(c.nodes, c.peers[i].ID)
	c.mu.Unlock()
	if n == nil {
		return
	}
	if err := n.Close(); err != nil {
		c.t.Errorf("stop %s: %v", c.peers[i].ID, err)
	}
}

func (c *cluster) close() {
	var closed sync.WaitGroup
	for i := range c.peers {
		closed.Go(func() { c.stop(i) })
	}
	closed.Wait()
	for _, ln := range c.listeners {
		_ = ln.Close()
	}
}

// dial returns a client of the given nodes; of all if none are given.
func (c *cluster) dial(nodes ...int) *holder.Client {
	c.t.Helper()
	endpoints := c.apis
	if len(nodes) > 0 {
		endpoints = nil
		for _, i := range nodes {
			endpoints = append(endpoints, c.apis[i])
		}
	}
	client, err := holder.Dial(endpoints)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// leader waits until the cluster answers, and returns the number of its leader.
func (c *cluster) leader() int {
	c.t.Helper()
	client := c.dial()
	var leader int
	c.eventually("a leader that answers", func(ctx context.Context) bool {
		if _, err := client.Get(ctx, lease.GetRequest{Key: "probe"}); err != nil {
			return false
		}
		status, err := client.Status(ctx)
		if err != nil {
			return false
		}
		for i, p := range c.peers {
			if p.ID == status.Leader {
				leader = i
				return true
			}
		}
		return false
	})
	return leader
}

func (c *cluster) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	c.t.Cleanup(cancel)
	return ctx
}

// eventually polls until holds does, for a minute at most.
func (c *cluster) eventually(what string, holds func(ctx context.Context) bool) {
	c.t.Helper()
	ctx := c.within(time.Minute)
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 5*time.Second)
		ok := holds(try)
		cancel()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
	c.t.Fatalf("not within a minute: %s", what)
}
