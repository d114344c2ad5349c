package sim

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// What was acknowledged is there after all have crashed; what a ghost writes is not.
func TestACrashOfAll(t *testing.T) {
	for _, log := range disk.LogKinds() {
		t.Run(string(log), func(t *testing.T) { crashAll(t, log) })
	}
}

func crashAll(t *testing.T, log disk.LogKind) {
	playOn(t, log, 3, nil, func(s *stage) {
		leader := s.leader()
		latest := s.granted(leader, "k", "o", time.Hour).Record.Epoch
		for i := range s.machines {
			s.disk(i, nemesis.DiskHanging)
		}
		s.send(leader, "lost")
		time.Sleep(100 * time.Millisecond)
		for i := range s.machines {
			_ = s.Kill(i) // lets the ghosts' disks go on
			s.disk(i, nemesis.DiskHealthy)
		}
		s.StartAll()
		leader = s.leader()
		ctx, cancel := within(time.Second)
		defer cancel()
		for key, want := range map[string]uint64{"k": latest, "lost": 0} {
			answer, err := s.direct[leader].Get(ctx, lease.GetRequest{Key: key})
			if err != nil || answer.Record.Epoch != want {
				s.t.Errorf("%s has epoch %d, %v, want %d", key, answer.Record.Epoch, err, want)
			}
		}
	})
}
