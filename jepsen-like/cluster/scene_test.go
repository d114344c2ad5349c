package cluster_test

import (
	"context"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/cluster"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// patience is how long anything may take that real processes do on a busy machine.
const patience = 90 * time.Second

// scene is a cluster and what was told of it.
type scene struct {
	*cluster.Cluster
	t *testing.T

	mu     sync.Mutex
	events []history.NodeEvent
}

// start returns a cluster of three nodes that serve.
func start(t *testing.T, change func(*cluster.Config)) *scene {
	t.Helper()
	s := &scene{t: t}
	cfg := cluster.Config{Dir: t.TempDir(), Nodes: 3, Program: cluster.Leasenode, Binary: binaries.Leasenode, OnEvent: func(e history.NodeEvent) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.events = append(s.events, e)
	}}
	change(&cfg)
	var err error
	if s.Cluster, err = cluster.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			for i := range s.Nodes() {
				log, _ := os.ReadFile(s.Log(i))
				t.Logf("%s", log[max(0, len(log)-3000):])
			}
		}
	})
	s.ready()
	return s
}

func real(*cluster.Config) {}

func chaos(c *cluster.Config) { c.Program, c.Binary = cluster.Chaosnode, binaries.Chaosnode }

func (s *scene) within() context.Context {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	s.t.Cleanup(cancel)
	return ctx
}

func (s *scene) ready() {
	s.t.Helper()
	if err := s.Ready(s.within()); err != nil {
		s.t.Fatal(err)
	}
}

// do fails the test if something could not be done.
func (s *scene) do(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) eventually(what string, ok func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("not within %v: %s; events: %+v", patience, what, s.told())
		}
	}
}

func (s *scene) told() []history.NodeEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// leader waits until there is one that is not the node except.
func (s *scene) leader(except int) int {
	s.t.Helper()
	leader := -1
	s.eventually("another leads", func() bool {
		node, ok := s.Leader(s.t.Context())
		leader = node
		return ok && node != except
	})
	return leader
}

func (s *scene) client(endpoints ...string) *holder.Client {
	s.t.Helper()
	client, err := holder.Dial(endpoints, holder.StayWithEndpoints())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

func (s *scene) acquire(client *holder.Client, key string) lease.Answer {
	s.t.Helper()
	answer, err := client.Acquire(s.within(), lease.AcquireRequest{Key: key, Owner: "owner", TTL: time.Hour})
	if err != nil {
		s.t.Fatal(err)
	}
	return answer
}

// whats returns what happened to a node, in order.
func (s *scene) whats(node int) []string {
	var whats []string
	for _, e := range s.told() {
		if e.Node == s.Names()[node] {
			whats = append(whats, e.What)
		}
	}
	return whats
}

// exit waits until a node has ended by itself, and returns what was told of it.
func (s *scene) exit(node int) string {
	s.t.Helper()
	detail := ""
	s.eventually("it exits", func() bool {
		for _, e := range s.told() {
			if e.Node == s.Names()[node] && e.What == "exited" {
				detail = e.Detail
			}
		}
		return detail != ""
	})
	return detail
}
