package raftnet_test

import (
	"context"
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet"
)

// scripted has m say that the leader is gone and that it has the best claim, and do
// nothing.
func (c *cluster) scripted(m *member) {
	c.sights.of(m.id).Answer(func(context.Context, raftnet.Question) raftnet.Finding {
		return raftnet.Finding{Verdict: raftnet.Gone, LastTerm: 99, LastIndex: 99, Stands: true}
	})
}

// Whoever has the best claim may fail to stand: the next does then.
func TestTheNextStandsIfTheBestDoesNot(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		c.scripted(followers[0])
		c.isolate(l)
		c.sights.disconnect(l.id, followers[1].id, syscall.ECONNREFUSED)
		began := time.Now()
		c.succeeded(l, backup)
		if took := time.Since(began); took < 100*time.Millisecond {
			t.Errorf("it did not wait: %v", took)
		}
	})
}

// A node that was stopped gives no answer: a majority of others is enough.
func TestASilentNodeHoldsNobodyUp(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, c *cluster, l *member, followers []*member) {
		silent := followers[3]
		c.sights.mu.Lock()
		for _, f := range followers {
			c.sights.fails[link{f.id, silent.id}] = errHole
		}
		c.sights.mu.Unlock()
		c.die(l)
		c.succeeded(l, atOnce)
	})
}

// Who is asked and sees the same looks after it itself, also if it had not noticed.
func TestWhoIsAskedStandsIfItHasTheBestClaim(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		c.isolate(l)
		c.sights.disconnectUnnoticed(l.id, followers[0].id, syscall.ECONNREFUSED)
		c.sights.disconnect(l.id, followers[1].id, syscall.ECONNREFUSED)
		if next := c.succeeded(l, atOnce); next != followers[0] {
			t.Errorf("%s leads", next.id)
		}
	})
}

// Of the leader of a past term nothing is said: another may lead since.
func TestOfAPastTermNothingIsSaid(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		term := l.Term()
		c.die(l)
		next := c.succeeded(l, atOnce)
		asker := c.sights.of("asker")
		for term, want := range map[uint64]raftnet.Verdict{term: raftnet.Unclear, next.Term(): raftnet.Gone} {
			for _, f := range followers {
				found, err := asker.Ask(t.Context(), string(f.id), raftnet.Question{Leader: string(l.id), Term: term})
				if err != nil || found.Verdict != want {
					t.Errorf("%s about term %d: %+v, %v", f.id, term, found, err)
				}
			}
		}
	})
}

func TestALeaderThatComesBackWhileTheNextWaitsStays(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		term := l.Term()
		c.scripted(followers[0])
		c.sights.disconnect(l.id, followers[1].id, syscall.ECONNREFUSED)
		time.Sleep(50 * time.Millisecond)
		if followers[1].probes("suspected") != 1 {
			t.Fatal("it is not waiting")
		}
		c.sights.connect(l.id, followers[1].id)
		time.Sleep(5 * time.Second)
		if followers[1].probes("stood_down") != 1 {
			t.Error("it did not stand down")
		}
		c.undisturbed(l, term)
	})
}

// A node that has given its vote in a newer term leaves it to whom it gave it.
func TestANodeThatHasVotedDoesNotStand(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		voter, other := followers[0], followers[1]
		header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte(other.id), Addr: []byte(other.id)}
		last := raftnet.Raft(other.Node).LastIndex()
		var vote raft.RequestVoteResponse
		if err := other.net.RequestVote(voter.id, raft.ServerAddress(voter.id), &raft.RequestVoteRequest{RPCHeader: header, Term: l.Term() + 1, LastLogTerm: l.Term(), LastLogIndex: last, LeadershipTransfer: true}, &vote); err != nil || !vote.Granted {
			t.Fatal(vote, err)
		}
		c.die(l)
		time.Sleep(500 * time.Millisecond)
		if voter.probes("suspected")+voter.probes("won")+voter.probes("lost") != 0 {
			t.Error("it has stood")
		}
		c.leader(l)
	})
}

// A node that was cut off for long asks at once whether it would be elected. It would
// not, and that holds nobody up.
func TestANodeThatWouldNotBeElectedHoldsNobodyUp(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, c *cluster, l *member, followers []*member) {
		header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte(followers[3].id), Addr: []byte(followers[3].id)}
		for _, f := range followers[:3] {
			if err := followers[3].net.RequestPreVote(f.id, raft.ServerAddress(f.id), &raft.RequestPreVoteRequest{RPCHeader: header, Term: l.Term() + 1}, &raft.RequestPreVoteResponse{}); err != nil {
				t.Fatal(err)
			}
		}
		c.die(l)
		c.succeeded(l, atOnce)
	})
}

// A node that cannot write its log does not stand, and says so: nobody waits for it.
func TestAFullNodeLeavesItToTheOthers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		followers[0].abstains.Store(true)
		c.die(l)
		if next := c.succeeded(l, atOnce); next != followers[1] {
			t.Errorf("%s leads", next.id)
		}
		if full := followers[0]; full.probes("lost")+full.probes("won") != 0 {
			t.Error("the full node stood")
		}
	})
}

func TestANonVoterDoesNotStand(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, c *cluster, l *member, followers []*member) {
		learner := followers[0]
		if err := raftnet.Raft(l.Node).DemoteVoter(learner.id, 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		c.die(l)
		if next := c.succeeded(l, atOnce); next == learner {
			t.Error("the learner leads")
		}
		if learner.probes("suspected") != 0 {
			t.Error("the learner has looked")
		}
	})
}

// While the members are being changed, who is to be asked is not certain.
func TestNobodyStandsWhileTheMembersChange(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		ahead, behind := followers[0], followers[1]
		c.net.mu.Lock() // ahead gets the change, and nobody hears that it did
		c.net.cut[link{l.id, behind.id}], c.net.cut[link{ahead.id, l.id}] = true, true
		c.net.mu.Unlock()
		before := raftnet.Raft(ahead.Node).LastIndex()
		raftnet.Raft(l.Node).AddNonvoter("n9", "n9", 0, 0)
		for raftnet.Raft(ahead.Node).LastIndex() == before {
			time.Sleep(time.Millisecond)
		}
		c.die(l)
		time.Sleep(500 * time.Millisecond)
		if ahead.probes("suspected")+ahead.probes("won")+ahead.probes("lost") != 0 || ahead.Leads() {
			t.Error("it has stood")
		}
		c.leader(l) // by the timeout
	})
}

// A node that has just stood does not again, whatever it sees.
func TestANodeStandsOnceInHalfASecond(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, c *cluster, l *member, followers []*member) {
		c.die(l)
		first := c.succeeded(l, atOnce)
		second := followers[3]
		if err := raftnet.Raft(first.Node).LeadershipTransferToServer(second.id, raft.ServerAddress(second.id)).Error(); err != nil {
			t.Fatal(err)
		}
		if next := c.leader(l, first); next != second {
			t.Fatalf("%s leads", next.id)
		}
		time.Sleep(200 * time.Millisecond)
		c.die(second)
		c.leader(l, second)
		if first.Leads() || first.probes("won") != 1 {
			t.Error("it stood twice")
		}
	})
}

// What comes to a node that has been elected, before it has opened its term, waits so long.
func TestAnElectedNodeHoldsWhatComes(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		next := followers[0]
		resume := next.log.hang()
		c.die(l)
		for !next.Elected() {
			time.Sleep(time.Millisecond)
		}
		done, confirmed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := next.do(acquire("k", "o", time.Hour))
			done <- err
		}()
		go func() { confirmed <- next.Confirm(t.Context()) }()
		synctest.Wait()
		if next.Leads() || len(done) != 0 || len(confirmed) != 0 {
			t.Error("it did not wait")
		}
		resume()
		if err := errors.Join(<-done, <-confirmed); err != nil {
			t.Error(err)
		}
	})
}
