package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

// settled returns the leader of a cluster that has been quiet for a while, and its term.
func (s *stage) settled() (leader int, term float64) {
	s.t.Helper()
	s.leader()
	time.Sleep(3 * time.Second)
	leader = s.leader()
	term, _ = s.machines[leader].running().leading()
	return leader, term
}

// The leader's process ends: nobody waits for a timeout, which is a second.
func TestALeaderThatDiesIsReplacedAtOnce(t *testing.T) {
	for _, n := range []int{3, 5} {
		play(t, n, nil, func(s *stage) {
			leader, _ := s.settled()
			_ = s.Kill(leader)
			died := time.Now()
			next := s.leader(leader)
			if took := time.Since(died); took > 300*time.Millisecond {
				s.t.Errorf("%d nodes: it took %v until %s served", n, took, nodeName(next))
			}
		})
	}
}

// quietFor fails the scenario if a node other than leader stands for election within a
// while.
func (s *stage) quietFor(d time.Duration, term float64) {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(5 * time.Millisecond) {
		for i, m := range s.machines {
			if now := m.running().term(); now > term {
				s.caught("terms", "%s is in term %v after %v, and all were in %v", nodeName(i), now, time.Since(began), term)
				return
			}
		}
	}
}

// A leader that is stopped, or that the network loses, may be back at any time: that takes
// the timeout, as ever, and ends.
func TestALeaderThatIsSilentIsNotReplacedEarly(t *testing.T) {
	for _, silence := range []func(*stage, int){
		func(s *stage, leader int) { _ = s.Stop(leader) },
		(*stage).isolate,
		func(s *stage, leader int) { s.bothWays(leader, nemesis.LinkState{HalfOpen: true}) },
	} {
		play(t, 3, nil, func(s *stage) {
			leader, term := s.settled()
			silence(s, leader)
			s.quietFor(800*time.Millisecond, term)
			silenced := time.Now()
			s.leader(leader)
			if took := time.Since(silenced); took > 10*time.Second {
				s.t.Errorf("it took %v more until another led", took)
			}
		})
	}
}

// The link between the leader and one follower is shut by something that refuses, as a
// firewall does: to that follower the leader looks dead. The others reach it, and it goes
// on.
func TestOneLinkThatRefuses(t *testing.T) {
	for _, n := range []int{3, 5} {
		play(t, n, nil, func(s *stage) {
			leader, term := s.settled()
			follower := (leader + 1) % n
			s.network.refuse(host(leader), host(follower))
			s.quietFor(20*time.Second, term)
			s.network.letIn(host(leader), host(follower))
			s.quietFor(5*time.Second, term)
			if _, err := s.acquire(leader, fmt.Sprint("after ", n), "o", lease.MinTTL); err != nil && !s.t.Failed() {
				s.t.Errorf("it led all the time: %v", err)
			}
		})
	}
}
