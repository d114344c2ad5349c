package sim

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

// unaware has the first node never find out by itself that it leads no longer, as one that
// was stopped in that moment.
func unaware(c *Cluster) { c.machines[0].tuning.Heartbeat = time.Hour }

// firstLeads makes the first node the leader. That does not stand for election itself.
func (s *stage) firstLeads() {
	s.t.Helper()
	for before := s.leader(); before != 0; before = s.leader() {
		time.Sleep(time.Second)
		_ = s.Terminate(before) // it hands over, most often to the first of the list
		s.until("the one that hands over has ended", func() bool { return s.machines[before].running() == nil })
		_ = s.Start(before)
	}
}

// What gets through between the first node and the others.
const (
	everything int32 = iota
	nothing
	heartbeatsToTheFirst
)

// A leader hands an entry to raft in the moment in which the first heartbeat of its
// successor arrives. The entry must not get into the log under the successor's term.
func TestAHeartbeatInTheMidst(t *testing.T) {
	var through atomic.Int32
	recorder := history.NewRecorder(nil)
	arrange := func(c *Cluster) {
		c.options.Recorder = recorder
		unaware(c)
		for i, m := range c.machines {
			m.censor = func(sent message) bool {
				switch through.Load() {
				case nothing:
					return i != 0 && sent.to != "n1"
				case heartbeatsToTheFirst:
					return i != 0 && (sent.to != "n1" || sent.heartbeat)
				default:
					return true
				}
			}
		}
	}
	play(t, 3, arrange, func(s *stage) {
		kept, release := s.pauses()
		defer release()
		s.firstLeads()
		time.Sleep(5 * time.Second)
		if s.leader() != 0 {
			s.t.Fatal("the first node has lost its leadership already")
		}
		through.Store(nothing)
		s.leader(0)
		kept[0].armed.Store(true)
		s.send(0, "k")
		s.until("an entry that is stamped", func() bool { return len(kept[0].came) > 0 })
		through.Store(heartbeatsToTheFirst)
		time.Sleep(time.Second)
		kept[0].gone <- struct{}{}
		time.Sleep(time.Second)
		through.Store(everything)
		time.Sleep(5 * time.Second)
		for _, e := range recorder.Run().Events {
			if e.What == differs || strings.Contains(e.Detail, exitText(12)) {
				s.caught("logs", "%s: %s", e.Node, e.Detail)
			}
		}
	})
}

// The answers to what a leader has sent are on their way for so long that it has been
// deposed when they come; just before, it is read. What was asked before the read proves
// nothing.
func TestADeposedLeaderIsAskedToVerify(t *testing.T) {
	play(t, 3, unaware, func(s *stage) {
		for round := 0; round < rounds && !s.t.Failed(); round++ {
			s.firstLeads()
			s.granted(0, "k", "before", lease.MinTTL)
			time.Sleep(3 * time.Second) // the log's clock passes its end
			s.oneWay(0, towards, nemesis.LinkState{Cut: true})
			time.Sleep(150 * time.Millisecond) // what it sends arrives, the answers do not
			s.isolate(0)
			latest := s.granted(s.leader(0), "k", "after", lease.MinTTL).Record.Epoch
			read := make(chan uint64, 1)
			s.joined.Go(func() {
				ctx, cancel := within(500 * time.Millisecond)
				defer cancel()
				answer, err := s.direct[0].Get(ctx, lease.GetRequest{Key: "k"})
				if err != nil {
					answer.Record.Epoch = latest
				}
				read <- answer.Record.Epoch
			})
			time.Sleep(20 * time.Millisecond)
			s.mend(0)
			if epoch := <-read; epoch < latest {
				s.caught("linearizable", "a deposed leader was read, and had epoch %d after %d", epoch, latest)
			}
			s.sees(0, "k", latest)
			time.Sleep(time.Second)
		}
	})
}
