package faulty_test

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
	"github.com/leasenode/leasenode/jepsen-like/chaosnode/faulty"
	"github.com/leasenode/leasenode/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// scene is a cluster of three real nodes in this process, on faulty disks.
type scene struct {
	t     *testing.T
	peers []node.Peer
	apis  []string
	disks []*faulty.Disk
	nodes []*node.Node

	mu        sync.Mutex
	listeners map[string]net.Listener // opened to know their ports
}

// start returns a cluster that serves, broken in a way unless mode is empty.
func start(t *testing.T, mode string) *scene {
	t.Helper()
	s := &scene{t: t, nodes: make([]*node.Node, 3), listeners: map[string]net.Listener{}}
	for i := range s.nodes {
		s.peers = append(s.peers, node.Peer{ID: fmt.Sprintf("n%d", i+1), Addr: s.reserve()})
		s.apis = append(s.apis, s.reserve())
		s.disks = append(s.disks, faulty.NewDisk())
	}
	t.Cleanup(func() {
		var closed sync.WaitGroup
		for i := range s.nodes {
			closed.Go(func() { s.stop(i) })
		}
		closed.Wait()
	})
	dir := t.TempDir()
	var started sync.WaitGroup
	for i := range s.nodes {
		started.Go(func() { s.open(i, dir, mode) })
	}
	started.Wait()
	if t.Failed() {
		t.FailNow()
	}
	s.leader()
	return s
}

func (s *scene) open(i int, dir, mode string) {
	parts := node.SystemParts(hclog.NewNullLogger())
	parts.Listen, parts.OpenStores = s.listen, s.disks[i].Open
	parts.Exit = func(error) {} // a node that hangs here is the test's to close
	if mode != "" {
		if err := faulty.Break(&parts, mode); err != nil {
			s.t.Error(err)
			return
		}
	}
	n, err := node.Open(s.within(), node.Config{
		ID: s.peers[i].ID, DataDir: filepath.Join(dir, s.peers[i].ID), PeerAddr: s.peers[i].Addr, APIAddr: s.apis[i], Cluster: s.peers,
	}, parts)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.nodes[i] = n
}

func (s *scene) reserve() string {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.listeners[ln.Addr().String()] = ln
	return ln.Addr().String()
}

func (s *scene) listen(addr string) (net.Listener, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ln := s.listeners[addr]
	delete(s.listeners, addr)
	if ln == nil {
		return net.Listen("tcp", addr)
	}
	return ln, nil
}

func (s *scene) stop(i int) {
	if s.nodes[i] != nil {
		_ = s.nodes[i].Close() // a disk that failed says so here
		s.nodes[i] = nil
	}
}

func (s *scene) within() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *scene) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// client returns a client of the nodes; of all if none are named.
func (s *scene) client(nodes ...int) *holder.Client {
	s.t.Helper()
	endpoints := s.apis
	if len(nodes) > 0 {
		endpoints = nil
		for _, i := range nodes {
			endpoints = append(endpoints, s.apis[i])
		}
	}
	client, err := holder.Dial(endpoints, holder.StayWithEndpoints())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// leader waits until all nodes name one leader, and returns its number.
func (s *scene) leader() int {
	s.t.Helper()
	leader := -1
	clients := []*holder.Client{s.client(0), s.client(1), s.client(2)}
	s.eventually("all name one leader", func() bool {
		named := map[string]bool{}
		for _, c := range clients {
			status, err := c.Status(s.within())
			if err != nil {
				return false
			}
			named[status.Leader] = true
			leader = -1
			for i, p := range s.peers {
				if p.ID == status.Leader {
					leader = i
				}
			}
		}
		return len(named) == 1 && leader >= 0
	})
	return leader
}

func acquire(owner, id string) lease.AcquireRequest {
	return lease.AcquireRequest{Key: "k", Owner: owner, TTL: time.Hour, RequestID: id}
}

func (s *scene) acquire(c *holder.Client, req lease.AcquireRequest) lease.Record {
	s.t.Helper()
	answer, err := c.Acquire(s.within(), req)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.Record
}

func (s *scene) release(c *holder.Client, owner string, epoch uint64) {
	s.t.Helper()
	if _, err := c.Release(s.within(), lease.ReleaseRequest{Key: "k", Owner: owner, Epoch: epoch}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) get(c *holder.Client, key string, consistency lease.Consistency) lease.Answer {
	s.t.Helper()
	answer, err := c.Get(s.within(), lease.GetRequest{Key: key, Consistency: consistency})
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}
