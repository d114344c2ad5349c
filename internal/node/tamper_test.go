package node_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet"
)

// tampering is a transport that changes the commands that reach a follower's log, once
// it is armed: what a bug, a bad disk or a newer leader could do.
type tampering struct {
	raftnet.Transport
	out    chan raft.RPC
	stop   chan struct{}
	once   sync.Once
	joined sync.WaitGroup

	mu     sync.Mutex
	change func(data []byte) []byte
}

func newTampering(inner raftnet.Transport) *tampering {
	t := &tampering{Transport: inner, out: make(chan raft.RPC), stop: make(chan struct{})}
	t.joined.Go(func() {
		for {
			select {
			case rpc := <-inner.Consumer():
				t.alter(rpc)
				select {
				case t.out <- rpc:
				case <-t.stop:
					return
				}
			case <-t.stop:
				return
			}
		}
	})
	return t
}

func (t *tampering) alter(rpc raft.RPC) {
	t.mu.Lock()
	defer t.mu.Unlock()
	request, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok || t.change == nil {
		return
	}
	for _, entry := range request.Entries {
		if entry.Type == raft.LogCommand {
			entry.Data = t.change(entry.Data)
		}
	}
}

func (t *tampering) arm(change func([]byte) []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.change = change
}

func (t *tampering) Consumer() <-chan raft.RPC { return t.out }

func (t *tampering) Close() error {
	t.once.Do(func() { close(t.stop) })
	t.joined.Wait()
	return t.Transport.Close()
}

// tamperedCluster returns a running cluster, the transport of one of its followers, and
// that follower's number.
func tamperedCluster(t *testing.T) (*cluster, *tampering, int) {
	t.Helper()
	var mu sync.Mutex
	transports := map[string]*tampering{}
	c := newCluster(t, 3)
	c.change = func(cfg *node.Config, parts *node.Parts) {
		parts.NewTransport = func(port *raftnet.Port, logger hclog.Logger) raftnet.Transport {
			tampered := newTampering(raftnet.NewTransport(port, logger))
			mu.Lock()
			defer mu.Unlock()
			transports[cfg.ID] = tampered
			return tampered
		}
	}
	c.startAll()
	follower := (c.leader() + 1) % 3
	mu.Lock()
	defer mu.Unlock()
	return c, transports[c.peers[follower].ID], follower
}

func (c *cluster) acquire(key string) {
	c.t.Helper()
	if _, err := c.dial().Acquire(c.within(time.Minute), lease.AcquireRequest{Key: key, Owner: "owner", TTL: time.Hour}); err != nil {
		c.t.Fatal(err)
	}
}

// stopped waits until node i has stopped itself, and returns why.
func (c *cluster) stopped(i int) error {
	c.t.Helper()
	c.mu.Lock()
	n := c.nodes[c.peers[i].ID]
	c.mu.Unlock()
	select {
	case <-n.Done():
		return n.Err()
	case <-time.After(time.Minute):
		c.t.Fatalf("%s goes on", c.peers[i].ID)
		return nil
	}
}

// A node that gets an entry which is newer than it stops and says so; it does not skip
// the entry, and the others go on.
func TestUnknownEntryStopsTheNode(t *testing.T) {
	c, transport, follower := tamperedCluster(t)
	transport.arm(func(data []byte) []byte {
		newer := bytes.Clone(data)
		newer[0] = 99
		return newer
	})
	c.acquire("k")
	var unknown *fsm.UnknownEntryError
	if err := c.stopped(follower); !errors.As(err, &unknown) {
		t.Errorf("it stopped because of %v", err)
	}
	c.acquire("after")
}

// A node whose state has come to differ stops itself; the others, which agree, go on.
func TestDivergedNodeStopsItself(t *testing.T) {
	c, transport, follower := tamperedCluster(t)
	transport.arm(func(data []byte) []byte { return bytes.Replace(bytes.Clone(data), []byte("owner"), []byte("thief"), 1) })
	c.acquire("k")
	transport.arm(nil)
	var diverged *node.DivergedError
	if err := c.stopped(follower); !errors.As(err, &diverged) || diverged.Own != c.peers[follower].ID {
		t.Errorf("it stopped because of %v", err)
	}
	c.acquire("after")
	for i := range c.peers {
		if i == follower {
			continue
		}
		answer, err := c.dial(i).Get(c.within(time.Minute), lease.GetRequest{Key: "k"})
		if err != nil || answer.Record.Owner != "owner" {
			t.Errorf("%s: %v, %v", c.peers[i].ID, answer, err)
		}
	}
}

func TestKeyLimit(t *testing.T) {
	c := newCluster(t, 3)
	c.change = func(cfg *node.Config, _ *node.Parts) { cfg.MaxKeys = 2 }
	c.startAll()
	c.acquire("a")
	c.acquire("b")
	_, err := c.dial().Acquire(c.within(time.Minute), lease.AcquireRequest{Key: "c", Owner: "o", TTL: time.Hour})
	var exhausted *lease.ExhaustedError
	if !errors.As(err, &exhausted) || exhausted.Resource != "keys" || exhausted.Limit != 2 || !strings.Contains(err.Error(), "2") {
		t.Errorf("%v", err)
	}
}

func TestConfigFaultsAreAllNamed(t *testing.T) {
	_, err := node.Open(context.Background(), node.Config{ID: "N 1", PeerAddr: "nowhere", APIAddr: ":80", Cluster: []node.Peer{{ID: "n2", Addr: "a:0"}}}, node.SystemParts(hclog.NewNullLogger()))
	if err == nil {
		t.Fatal("it was opened")
	}
	_, err2 := node.Open(context.Background(), node.Config{
		ID: "n1", DataDir: t.TempDir(), PeerAddr: "127.0.0.1:2", APIAddr: "127.0.0.1:3", Cluster: []node.Peer{{ID: "n1", Addr: "127.0.0.1:1"}},
	}, node.SystemParts(hclog.NewNullLogger()))
	if err2 == nil || !strings.Contains(err2.Error(), "they must be the same") {
		t.Errorf("a node that is listed elsewhere: %v", err2)
	}
	for _, part := range []string{"id:", "data-dir:", "peer-addr:", "api-addr:", "does not list this node", "1 to 65535"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}
