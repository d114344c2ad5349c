package sim

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// Found by seed 1 of an early version: what is passed on to the leader waited for ever
// in a connection that had gone silent.
func TestSilentConnectionsBetweenNodesAreGivenUp(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		s.leader()
		for i := range s.machines {
			s.until("each node serves", func() bool { return s.reads(i) })
		}
		for i := range s.machines {
			s.bothWays(i, nemesis.LinkState{HalfOpen: true})
		}
		time.Sleep(time.Second)
		for i := range s.machines {
			s.mend(i)
		}
		healed := time.Now()
		for i := range s.machines {
			s.until(nodeName(i)+" serves again", func() bool { return s.reads(i) })
		}
		if took := time.Since(healed); took > 20*time.Second {
			s.t.Errorf("it took %v until all served", took)
		}
	})
}

// Found by the profile of a scenario: two nodes that waited for a third asked each other
// without a pause.
func TestTwoThatWaitForAThirdDoNotSpin(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		_ = s.Kill(2) // before it has met anybody
		time.Sleep(time.Second)
		made := func() int {
			s.network.mu.Lock()
			defer s.network.mu.Unlock()
			return s.network.made
		}
		before := made()
		time.Sleep(10 * time.Second)
		if n := made() - before; n > 200 {
			s.t.Errorf("they connected %d times in 10 s", n)
		}
	})
}
