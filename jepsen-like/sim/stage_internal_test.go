package sim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/jepsen-like/workload"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// The tests of this kind are scenarios: what schedules of chance meet once in many
// thousand runs is brought about step by step. Each would be red if the rule that it is
// about were left out; package mutants leaves them out.

// stage is a cluster for one scenario, in a bubble.
type stage struct {
	*Cluster
	t      *testing.T
	direct []*workload.Direct
}

// play makes a cluster of n nodes, of which change, if set, may alter the parts, and has
// act use it once it serves.
func play(t *testing.T, n int, change func(*Cluster), act func(*stage)) {
	t.Helper()
	playOn(t, disk.LogBolt, n, change, act)
}

// playOn is play with nodes that keep their logs in that way.
func playOn(t *testing.T, log disk.LogKind, n int, change func(*Cluster), act func(*stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			dir = "/dev/shm"
		}
		c, err := NewCluster(Config{Seed: uint64(n), Nodes: n, Log: log, Holders: 2, Tuning: raftnet.DefaultTuning(), Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		s := &stage{Cluster: c, t: t}
		defer s.end()
		if change != nil {
			change(c)
		}
		for _, addr := range c.Endpoints() {
			d, err := workload.NewDirect(addr, c.dialFrom(outside))
			if err != nil {
				t.Fatal(err)
			}
			s.direct = append(s.direct, d)
		}
		c.StartAll()
		act(s)
	})
}

func (s *stage) end() {
	for _, d := range s.direct {
		_ = d.Close()
	}
	if err := s.Close(); err != nil {
		s.t.Error(err)
	}
}

// caught fails the test for the reason that package mutants looks for.
func (s *stage) caught(by, format string, args ...any) {
	s.t.Helper()
	s.t.Errorf("caught by %s: %s", by, fmt.Sprintf(format, args...))
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// until polls until holds does, and fails the scenario after a minute.
func (s *stage) until(what string, holds func() bool) {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	s.t.Fatalf("not within a minute: %s", what)
}

// leader waits for a node, other than those given, that serves a read as the leader.
func (s *stage) leader(except ...int) int {
	s.t.Helper()
	found := -1
	s.until("a leader that serves", func() bool {
		for i, m := range s.machines {
			l := m.running()
			if l == nil || contains(except, i) {
				continue
			}
			if _, leads := l.leading(); leads && s.reads(i) {
				found = i
				return true
			}
		}
		return false
	})
	return found
}

func contains(all []int, one int) bool {
	for _, x := range all {
		if x == one {
			return true
		}
	}
	return false
}

// reads reports whether node i serves a linearizable read.
func (s *stage) reads(i int) bool {
	ctx, cancel := within(200 * time.Millisecond)
	defer cancel()
	_, err := s.direct[i].Get(ctx, lease.GetRequest{Key: "probe"})
	return err == nil
}

// acquire asks node i once.
func (s *stage) acquire(i int, key, owner string, ttl time.Duration) (lease.Answer, error) {
	ctx, cancel := within(2 * time.Second)
	defer cancel()
	return s.direct[i].Acquire(ctx, lease.AcquireRequest{Key: key, Owner: owner, TTL: ttl})
}

// granted asks node i until it grants, and returns the grant.
func (s *stage) granted(i int, key, owner string, ttl time.Duration) lease.Answer {
	s.t.Helper()
	var answer lease.Answer
	s.until("a grant of "+key, func() (ok bool) {
		var err error
		answer, err = s.acquire(i, key, owner, ttl)
		return err == nil
	})
	return answer
}

// send asks node i for key, and does not wait for what comes of it.
func (s *stage) send(i int, key string) {
	s.joined.Go(func() { _, _ = s.acquire(i, key, "sender", time.Second) })
	synctest.Wait()
}

// isolate cuts node i off from the other nodes, and not from clients; mend undoes it.
func (s *stage) isolate(i int) { s.bothWays(i, nemesis.LinkState{Cut: true}) }
func (s *stage) mend(i int)    { s.bothWays(i, nemesis.LinkState{}) }

func (s *stage) bothWays(i int, state nemesis.LinkState) {
	s.oneWay(i, away, state)
	s.oneWay(i, towards, state)
}

// direction is of what flows between a node and the others.
type direction int

const (
	away direction = iota
	towards
)

// oneWay puts all ways between node i and the others, in a direction, into a state.
func (s *stage) oneWay(i int, d direction, state nemesis.LinkState) {
	for j := range s.machines {
		switch {
		case j == i:
		case d == away:
			s.SetLink(i, j, state)
		default:
			s.SetLink(j, i, state)
		}
	}
}

func (s *stage) disk(i int, state nemesis.DiskState) { _ = s.SetDisk(i, state) }

// sees waits until node i's own state has the key at an epoch.
func (s *stage) sees(i int, key string, epoch uint64) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s has epoch %d of %s", nodeName(i), epoch, key), func() bool {
		ctx, cancel := within(100 * time.Millisecond)
		defer cancel()
		answer, err := s.direct[i].Get(ctx, lease.GetRequest{Key: key, Consistency: lease.Stale})
		return err == nil && answer.Record.Epoch >= epoch
	})
}

// holder returns holder i with the library, to be closed by close.
func (s *stage) holder(i int, ttl time.Duration) (h *holder.Holder, shut func()) {
	s.t.Helper()
	client, err := holder.Dial(s.Endpoints(), holder.DialWith(s.dialFrom(clientHost(1+i))))
	if err != nil {
		s.t.Fatal(err)
	}
	h, err = holder.New(client, holder.Config{Owner: fmt.Sprintf("h%d", i+1), TTL: ttl, Clock: s.holders[i].clock})
	if err != nil {
		s.t.Fatal(errors.Join(err, client.Close()))
	}
	return h, func() {
		h.Close()
		_ = client.Close()
	}
}

// toHolder puts what nodes send to holder i into a state, and fromHolder what it sends.
func (s *stage) toHolder(i int, state nemesis.LinkState) {
	for n := range s.machines {
		s.network.set(route{host(n), clientHost(1 + i)}, state)
	}
}

func (s *stage) fromHolder(i int, state nemesis.LinkState) {
	for n := range s.machines {
		s.network.set(route{clientHost(1 + i), host(n)}, state)
	}
}
