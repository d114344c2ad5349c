package sim

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

// pause keeps one goroutine of a node from running, between its reading of the
// monotonic clock and what it does with it.
type pause struct {
	armed atomic.Bool
	came  chan struct{} // has a token when one is kept
	gone  chan struct{} // let it go on with a token
}

// pauses gives each node a pause. The returned function lets everybody go.
func (s *stage) pauses() (all []*pause, release func()) {
	over := make(chan struct{})
	for _, m := range s.machines {
		p := &pause{came: make(chan struct{}, 1), gone: make(chan struct{}, 1)}
		m.clock.paused.Store(func() {
			if !p.armed.CompareAndSwap(true, false) {
				return
			}
			p.came <- struct{}{}
			select {
			case <-p.gone:
			case <-over:
			}
		})
		all = append(all, p)
	}
	return all, func() { close(over) }
}

// comesBack has old, of which a goroutine is kept from running, follow again and lead
// again under a lease that another has granted. It lets the goroutine go on then, and
// looks whether the lease lasts.
func (s *stage) comesBack(old int, kept *pause) {
	s.t.Helper()
	other := s.leader(old)
	s.disk(old, nemesis.DiskHealthy)
	s.mend(old)
	mark := s.granted(other, "mark", "o", lease.MinTTL)
	s.sees(old, "mark", mark.Record.Epoch)
	const ttl = 1500 * time.Millisecond
	sent := time.Now()
	grant := s.granted(other, "k", "o", ttl)
	_ = s.Terminate(other) // it hands over, to old if that is the first in its list
	s.until("a new leader", func() bool { i, ok := s.Leader(s.t.Context()); return ok && i != other })
	kept.gone <- struct{}{}
	for time.Since(sent) < ttl-200*time.Millisecond {
		for i := range s.machines {
			if _, err := s.acquire(i, "k", "thief", ttl); err == nil {
				s.caught("early end", "a lease of %v at epoch %d was over after %v", ttl, grant.Record.Epoch, time.Since(sent))
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.until("the one that handed over has ended", func() bool { return s.machines[other].running() == nil })
	_ = s.Start(other)
	s.leader()
	time.Sleep(2 * time.Second)
}

// rounds is how often a scenario is tried that does not come about each time: whether the
// deposed leader leads again is a matter of luck.
const rounds = 8

// A leader stamps an entry when it has been deposed and does not know; before it hands
// the entry to raft it leads again. The reading is of another time than the one that has
// passed on the cluster clock, and must not count.
func TestALeaderThatComesBack(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		kept, release := s.pauses()
		defer release()
		for round := 0; round < rounds && !s.t.Failed(); round++ {
			old := s.leader()
			s.isolate(old)
			s.disk(old, nemesis.DiskHanging)
			s.send(old, "x") // raft waits for the disk, and does not look whether it leads
			time.Sleep(3 * time.Second)
			kept[old].armed.Store(true)
			s.send(old, "y")
			s.until("an entry that is stamped", func() bool { return len(kept[old].came) > 0 })
			<-kept[old].came
			s.comesBack(old, kept[old])
		}
	})
}

// A leader that is about to open its term is deposed, and then leads again: what has
// passed before its opening is answered does not count.
func TestAnOpeningThatComesLate(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		kept, release := s.pauses()
		defer release()
		for round := 0; round < rounds && !s.t.Failed(); round++ {
			before := s.leader()
			others := []int{(before + 1) % 3, (before + 2) % 3}
			for _, i := range others {
				kept[i].armed.Store(true)
			}
			_ = s.Kill(before)
			elected := -1
			s.until("a leader that opens its term", func() bool {
				for _, i := range others {
					if len(kept[i].came) > 0 {
						elected = i
					}
				}
				return elected >= 0
			})
			<-kept[elected].came
			for _, i := range others {
				kept[i].armed.Store(false)
			}
			s.isolate(elected)
			_ = s.Start(before)
			s.comesBack(elected, kept[elected])
		}
	})
}

// A mutation joins an entry that has been waiting for its turn: the entry's reading of
// the clock must not be of before the mutation was sent.
func TestABatchThatWaits(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		leader := s.leader()
		for j := range s.machines {
			if j != leader {
				s.SetLink(leader, j, nemesis.LinkState{Delay: 300 * time.Millisecond})
			}
		}
		for _, key := range []string{"x", "y", "z"} { // two are on their way, one waits
			s.send(leader, key)
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(200 * time.Millisecond)
		const ttl = time.Second
		sent := time.Now()
		grant, err := s.acquire(leader, "k", "o", ttl)
		if err != nil {
			s.t.Fatal(err)
		}
		s.mend(leader)
		s.granted(leader, "k", "next", ttl)
		if lasted := time.Since(sent); lasted < ttl-ttl/50 {
			s.caught("early end", "a lease of %v at epoch %d was over %v after it was asked for", ttl, grant.Record.Epoch, lasted)
		}
	})
}

// Who was told that a lease is over must not see it renewed, whatever became of the
// leader that said so.
func TestAReadThatCallsALeaseOver(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		for round := range 6 {
			leader := s.leader()
			grant := s.granted(leader, "k", "o", time.Second+time.Duration(round)*130*time.Millisecond)
			s.until("a read that calls it over", func() bool {
				ctx, cancel := within(time.Second)
				defer cancel()
				answer, err := s.direct[leader].Get(ctx, lease.GetRequest{Key: "k"})
				return err == nil && answer.Remaining == 0
			})
			_ = s.Kill(leader)
			next := s.leader(leader)
			ctx, cancel := within(time.Second)
			_, err := s.direct[next].Renew(ctx, lease.RenewRequest{Key: "k", Owner: "o", Epoch: grant.Record.Epoch, TTL: time.Second})
			cancel()
			if err == nil {
				s.caught("linearizable", "a lease that a read had called over was renewed")
				return
			}
			_ = s.Start(leader)
			time.Sleep(2 * time.Second)
		}
	})
}

// A leader that hangs and has been deposed must not serve a read from what it has.
func TestADeposedLeaderIsRead(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		old := s.leader()
		s.granted(old, "k", "before", lease.MinTTL)
		time.Sleep(3 * time.Second) // the log's clock passes its end
		s.disk(old, nemesis.DiskHanging)
		s.send(old, "x")
		s.isolate(old)
		s.granted(s.leader(old), "k", "after", time.Minute)
		ctx, cancel := within(500 * time.Millisecond)
		defer cancel()
		answer, err := s.direct[old].Get(ctx, lease.GetRequest{Key: "k"})
		if err == nil && answer.Record.Owner != "after" {
			s.caught("linearizable", "a deposed leader was read, and had %q", answer.Record.Owner)
		}
	})
}
