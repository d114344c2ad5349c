package sim

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// calm runs something that must not shake a cluster: terms grow by less than 3, and a
// holder with the ttl that is recommended does not lose its lease, nor is it fenced.
func calm(t *testing.T, shake func(s *stage, leader int)) {
	play(t, 3, nil, func(s *stage) {
		leader := s.leader()
		h, shut := s.holder(0, 10*time.Second)
		defer shut()
		ctx, cancel := within(time.Minute)
		defer cancel()
		l, err := h.Acquire(ctx, "k")
		if err != nil {
			s.t.Fatal(err)
		}
		held := l.Context()
		before := s.term()
		shake(s, leader)
		if after := s.term(); after-before >= 3 {
			s.t.Errorf("the term went from %d to %d", before, after)
		}
		if held.Err() != nil || !l.Held() {
			s.t.Errorf("the lease was not held all the time: %v", l.Check())
		}
	})
}

// term returns the highest term that a node tells.
func (s *stage) term() uint64 {
	s.t.Helper()
	highest := uint64(0)
	for _, addr := range s.Endpoints() {
		client, err := holder.Dial([]string{addr}, holder.StayWithEndpoints(), holder.DialWith(s.dialFrom(outside)))
		if err != nil {
			s.t.Fatal(err)
		}
		ctx, cancel := within(5 * time.Second)
		if status, err := client.Status(ctx); err == nil {
			highest = max(highest, status.Term)
		}
		cancel()
		_ = client.Close()
	}
	return highest
}

// The leader is heard, and hears nobody.
func TestOneWayLossToTheLeader(t *testing.T) { calm(t, oneWayFor(time.Minute, towards)) }

// The leader hears everybody, and is not heard.
func TestOneWayLossFromTheLeader(t *testing.T) { calm(t, oneWayFor(time.Minute, away)) }

func oneWayFor(length time.Duration, d direction) func(s *stage, leader int) {
	return func(s *stage, leader int) {
		s.oneWay(leader, d, nemesis.LinkState{Cut: true})
		time.Sleep(length)
		s.oneWay(leader, d, nemesis.LinkState{})
		time.Sleep(length)
	}
}

// A node comes and goes every 5 s for 10 minutes: a follower, and the leader.
func TestAFollowerFlaps(t *testing.T) {
	calm(t, func(s *stage, leader int) { s.flap((leader + 1) % 3) })
}

func TestTheLeaderFlaps(t *testing.T) {
	calm(t, func(s *stage, leader int) { s.flap(leader) })
}

func (s *stage) flap(i int) {
	for range 60 {
		s.isolate(i)
		time.Sleep(5 * time.Second)
		s.mend(i)
		time.Sleep(5 * time.Second)
	}
}
