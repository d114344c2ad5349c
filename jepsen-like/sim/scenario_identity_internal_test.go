package sim

import (
	"os"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// wipe gives a node that does not run an empty disk.
func (s *stage) wipe(i int) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.machines[i]
	if m.life != nil {
		s.t.Fatalf("%s runs", m.config.ID)
	}
	if err := os.RemoveAll(m.dir); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
}

// grants grants a key n times and returns the latest epoch.
func (s *stage) grants(key string, n int) uint64 {
	var epoch uint64
	leader := s.leader()
	for range n {
		epoch = s.granted(leader, key, "o", lease.MinTTL).Record.Epoch
		time.Sleep(2 * lease.MinTTL)
	}
	return epoch
}

// grantsAgain asks the nodes for a key for a while: they must not grant an epoch that was
// granted before.
func (s *stage) grantsAgain(key string, latest uint64, nodes ...int) {
	for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(100 * time.Millisecond) {
		for _, i := range nodes {
			if answer, err := s.acquire(i, key, "again", time.Second); err == nil && answer.Record.Epoch <= latest {
				s.caught("epochs", "epoch %d was granted again, after %d", answer.Record.Epoch, latest)
				return
			}
		}
	}
}

// A node that acknowledged entries comes back with an empty disk under its old name: it
// must not make a majority with one that never had them.
func TestAWipedNodeComesBack(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		s.leader()
		_ = s.Kill(2)
		latest := s.grants("k", 3)
		_, _ = s.Kill(0), s.Kill(1)
		s.wipe(1)
		_, _ = s.Start(1), s.Start(2)
		s.grantsAgain("k", latest, 1, 2)
	})
}

// Two wiped nodes of three must not found a second cluster.
func TestAWipedMajority(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		latest := s.grants("k", 2)
		_, _, _ = s.Kill(0), s.Kill(1), s.Kill(2)
		s.wipe(0)
		s.wipe(1)
		_, _ = s.Start(0), s.Start(1)
		s.grantsAgain("k", latest, 0, 1)
	})
}
