package cluster_test

import (
	"context"
	"crypto/rand"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/cluster"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

func dial(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		_ = conn.Close()
	}
	return conn, err
}

// A chaosnode that nothing is done to does what a leasenode does.
func TestAHealthyChaosnode(t *testing.T) {
	s := start(t, chaos)
	client := s.client(s.Endpoints()...)
	first := s.acquire(client, "k")
	renewed, err := client.Renew(s.within(), lease.RenewRequest{Key: "k", Owner: "owner", Epoch: 1, TTL: time.Hour})
	s.do(err)
	if first.Record.Epoch != 1 || renewed.Record.LeaseUntil < first.Record.LeaseUntil {
		t.Errorf("%+v, %+v", first, renewed)
	}
	_, err = client.Release(s.within(), lease.ReleaseRequest{Key: "k", Owner: "owner", Epoch: 1})
	s.do(err)
	if second := s.acquire(client, "k"); second.Record.Epoch != 2 {
		t.Errorf("%+v", second)
	}
	leader := s.leader(-1)
	s.do(s.Terminate(leader))
	s.do(s.Start(leader))
	s.ready()
	if detail := s.exit(leader); !strings.HasPrefix(detail, "exit code 0: ") {
		t.Errorf("%q", detail)
	}
	if _, err := client.Renew(s.within(), lease.RenewRequest{Key: "k", Owner: "owner", Epoch: 2, TTL: time.Hour}); err != nil {
		t.Error(err)
	}
}

// now reads the cluster clock.
func (s *scene) now(client *holder.Client) lease.Instant {
	s.t.Helper()
	answer, err := client.Get(s.within(), lease.GetRequest{Key: "k"})
	if err != nil {
		s.t.Fatal(err)
	}
	return answer.Now
}

func TestTheClockOfANode(t *testing.T) {
	s := start(t, func(c *cluster.Config) { chaos(c); c.Nodes = 1 })
	client := s.client(s.Direct()...)
	s.acquire(client, "k")
	s.do(s.SetClock(0, nemesis.ClockState{Rate: 9}))
	from, began := s.now(client), time.Now()
	s.eventually("it runs ten times as fast", func() bool {
		return s.now(client).Sub(from) > 5*time.Second
	})
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("5 s of the cluster clock took %v", took)
	}
	s.do(s.SetClock(0, nemesis.ClockState{Jump: 10 * time.Minute}))
	if jumped := s.now(client).Sub(from); jumped < 10*time.Minute || jumped > 12*time.Minute {
		t.Errorf("it has jumped by %v", jumped)
	}
	if err := s.SetClock(0, nemesis.ClockState{Rate: -2}); err == nil {
		t.Error("a clock goes back")
	}
	// A rate outlives a restart.
	s.do(s.SetClock(0, nemesis.ClockState{Rate: 9}))
	s.do(s.Kill(0))
	s.do(s.Start(0))
	s.ready()
	client = s.client(s.Direct()...)
	from, began = s.now(client), time.Now()
	s.eventually("it runs ten times as fast", func() bool { return s.now(client).Sub(from) > 5*time.Second })
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("5 s of the cluster clock took %v after a restart", took)
	}
}

func TestTheDiskOfANodeFails(t *testing.T) {
	s := start(t, chaos)
	leader := s.leader(-1)
	s.do(s.SetDisk(leader, nemesis.DiskFailing))
	s.acquire(s.client(s.Endpoints()...), "a")
	if detail := s.exit(leader); !strings.HasPrefix(detail, "exit code 10: ") || !strings.Contains(detail, "made up") {
		t.Errorf("%q", detail)
	}
	s.do(s.SetDisk(leader, nemesis.DiskHealthy))
	s.do(s.Start(leader))
	s.ready()
}

func TestTheDiskOfANodeIsReadOnly(t *testing.T) {
	s := start(t, chaos)
	leader := s.leader(-1)
	s.do(s.SetDisk(leader, nemesis.DiskReadOnly))
	s.acquire(s.client(s.Endpoints()...), "a")
	if detail := s.exit(leader); !strings.HasPrefix(detail, "exit code 10: ") || !strings.Contains(detail, "read-only") {
		t.Errorf("%q", detail)
	}
	s.do(s.SetDisk(leader, nemesis.DiskHealthy))
	s.do(s.Start(leader))
	s.ready()
}

// A node is killed in the middle of a snapshot that it takes, in one that it is sent, and
// not after its disk was told to be well again; and it comes back each time.
func TestANodeIsKilledInTheMiddleOfASnapshot(t *testing.T) {
	s := start(t, chaos)
	client := s.client(s.Endpoints()...)
	node := (s.leader(-1) + 1) % s.Nodes()
	died := func(at string) func() bool {
		return func() bool {
			s.acquire(client, rand.Text())
			return slices.ContainsFunc(s.told(), func(e history.NodeEvent) bool {
				return e.Node == s.Names()[node] && e.What == control.Killed && strings.HasPrefix(e.Detail, "at a "+at)
			})
		}
	}
	s.do(s.SetDisk(node, nemesis.DiskDeadly))
	s.eventually("it is killed", died(control.SnapshotTaken))
	if slices.Contains(s.whats(node), "exited") {
		t.Errorf("%v", s.whats(node))
	}
	for range 200 { // until the others have forgotten what it needs
		s.acquire(client, rand.Text())
	}
	others := func(e history.NodeEvent) bool { return e.Node != s.Names()[node] && e.What == control.SnapshotTaken }
	before := len(slices.DeleteFunc(s.told(), func(e history.NodeEvent) bool { return !others(e) }))
	s.eventually("both others take snapshots", func() bool {
		s.acquire(client, rand.Text())
		return len(slices.DeleteFunc(s.told(), func(e history.NodeEvent) bool { return !others(e) })) > before+4
	})
	s.do(s.Start(node))
	s.eventually("it is killed again", died(control.SnapshotReceived))
	s.do(s.SetDisk(node, nemesis.DiskHealthy))
	s.do(s.Start(node))
	s.ready()
	pid, _ := s.PID(node)
	s.do(s.SetDisk(node, nemesis.DiskDeadly))
	s.do(s.SetDisk(node, nemesis.DiskHealthy))
	taken := len(s.told())
	s.eventually("it goes on to take snapshots", func() bool {
		s.acquire(client, rand.Text())
		return slices.ContainsFunc(s.told()[taken:], func(e history.NodeEvent) bool { return e.Node == s.Names()[node] && e.What == control.SnapshotTaken })
	})
	if again, _ := s.PID(node); again != pid {
		t.Error("it was started anew")
	}
}

func TestTheDiskOfANodeHangs(t *testing.T) {
	s := start(t, chaos)
	leader := s.leader(-1)
	s.do(s.SetDisk(leader, nemesis.DiskHanging))
	s.acquire(s.client(s.Endpoints()...), "a")
	if detail := s.exit(leader); !strings.HasPrefix(detail, "exit code 11: ") {
		t.Errorf("%q", detail)
	}
}

// A node whose disk heals when it has ended the node already is started all the same,
// and one that goes on is left alone.
func TestANodeIsStartedWhenItsDiskHeals(t *testing.T) {
	s := start(t, chaos)
	leader := s.leader(-1)
	client := s.client(s.Endpoints()...)
	for range 3 {
		s.do(s.SetDisk(leader, nemesis.DiskFailing))
		s.acquireOrNot(client)
		s.do(s.SetDisk(leader, nemesis.DiskHealthy))
		s.do(s.Start(leader))
		s.ready()
	}
	pid, _ := s.PID(leader)
	s.do(s.SetDisk(leader, nemesis.DiskHanging))
	s.do(s.SetDisk(leader, nemesis.DiskHealthy))
	s.do(s.Start(leader))
	if again, _ := s.PID(leader); again != pid {
		t.Error("it was started anew")
	}
}

// acquireOrNot has the leader write, whatever comes of it.
func (s *scene) acquireOrNot(client *holder.Client) {
	ctx, cancel := context.WithTimeout(s.t.Context(), 300*time.Millisecond)
	defer cancel()
	_, _ = client.Acquire(ctx, lease.AcquireRequest{Key: "any", Owner: "owner", TTL: time.Second})
}

func TestTheDiskOfANodeIsFullOrSlow(t *testing.T) {
	s := start(t, func(c *cluster.Config) { chaos(c); c.Nodes = 1 })
	client := s.client(s.Direct()...)
	s.acquire(client, "a")
	s.do(s.SetDisk(0, nemesis.DiskSlow))
	began := time.Now()
	s.acquire(client, "b")
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("a write took %v", took)
	}
	s.do(s.SetDisk(0, nemesis.DiskFull))
	s.eventually("nothing is accepted", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := client.Acquire(ctx, lease.AcquireRequest{Key: "c", Owner: "owner", TTL: time.Hour})
		return err != nil
	})
	s.do(s.SetDisk(0, nemesis.DiskHealthy))
	s.acquire(client, "d")
	if _, runs := s.PID(0); !runs {
		t.Error("it has ended")
	}
	if err := s.SetDisk(0, "wet"); err == nil {
		t.Error("a disk can be wet")
	}
}
