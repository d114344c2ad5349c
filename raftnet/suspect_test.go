package raftnet_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet"
)

// atOnce is how long a change of leaders may take when nobody waits for a timeout or for
// somebody with a better claim, backup when somebody does.
const (
	atOnce = 80 * time.Millisecond
	backup = 400 * time.Millisecond
)

// probes returns how often m's investigations have come to result.
func (m *member) probes(result string) int {
	families, err := m.registry.Gather()
	if err != nil {
		panic(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == "leasenode_failover_probes_total" && metric.GetLabel()[0].GetValue() == result {
				return int(metric.GetCounter().GetValue())
			}
		}
	}
	return 0
}

// inBubble runs a test on a cluster of n that has been quiet for a while. followers are
// in the order of their names.
func inBubble(t *testing.T, n int, test func(t *testing.T, c *cluster, l *member, followers []*member)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, n)
		defer c.close()
		defer c.heal()
		l := c.leader()
		if _, err := l.do(acquire("before", "o", time.Hour)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		var followers []*member
		for _, m := range c.members {
			if m != l {
				followers = append(followers, m)
			}
		}
		test(t, c, l, followers)
	})
}

// succeeded waits for a leader other than l, checks that it came within most, and how.
func (c *cluster) succeeded(l *member, most time.Duration) *member {
	c.t.Helper()
	began := time.Now()
	next := c.leader(l)
	if took := time.Since(began); took > most {
		c.t.Errorf("%s leads after %v, want %v", next.id, took, most)
	}
	time.Sleep(5 * time.Millisecond) // it notes that it has won
	if next.probes("won") != 1 {
		c.t.Errorf("%s leads, but not by having seen that %s is gone", next.id, l.id)
	}
	return next
}

// undisturbed checks that l goes on leading its term.
func (c *cluster) undisturbed(l *member, term uint64) {
	c.t.Helper()
	if !l.Leads() || l.Term() != term {
		c.t.Errorf("%s led term %d; now term %d, leading: %v", l.id, term, l.Term(), l.Leads())
	}
	if _, err := l.do(acquire(fmt.Sprint(time.Now()), "o", time.Hour)); err != nil {
		c.t.Error(err)
	}
	for _, m := range c.members {
		if m.probes("won")+m.probes("lost") != 0 {
			c.t.Errorf("%s stood", m.id)
		}
	}
}

func TestALeaderThatIsGoneIsReplacedAtOnce(t *testing.T) {
	for _, n := range []int{3, 5} {
		inBubble(t, n, func(t *testing.T, c *cluster, l *member, followers []*member) {
			term := l.Term()
			c.die(l)
			next := c.succeeded(l, atOnce)
			if next != followers[0] {
				t.Errorf("%s leads, though all logs are equal and %s comes first", next.id, followers[0].id)
			}
			if next.Term() != term+1 {
				t.Errorf("the term went from %d to %d", term, next.Term())
			}
			if _, err := next.do(acquire("after", "o", time.Hour)); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			for _, f := range followers {
				if f != next && (f.probes("stood_down") != 1 || f.probes("denied") != 0) {
					t.Errorf("%s: stood down %d, denied %d", f.id, f.probes("stood_down"), f.probes("denied"))
				}
			}
		})
	}
}

// One bad link must not depose a leader that the others reach.
func TestOneFollowerAloneDeposesNobody(t *testing.T) {
	for _, n := range []int{3, 5} {
		inBubble(t, n, func(t *testing.T, c *cluster, l *member, followers []*member) {
			term := l.Term()
			c.sights.disconnect(l.id, followers[0].id, syscall.ECONNREFUSED)
			time.Sleep(10 * time.Second)
			if followers[0].probes("denied") == 0 {
				t.Error("it was not denied")
			}
			c.undisturbed(l, term)
		})
	}
}

// Two of five see it gone, and three do not.
func TestAMinorityDeposesNobody(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, c *cluster, l *member, followers []*member) {
		term := l.Term()
		c.sights.disconnect(l.id, followers[0].id, syscall.ECONNREFUSED)
		c.sights.disconnect(l.id, followers[1].id, syscall.ECONNREFUSED)
		time.Sleep(10 * time.Second)
		if followers[0].probes("denied") == 0 || followers[1].probes("denied") == 0 {
			t.Error("they were not denied")
		}
		c.undisturbed(l, term)
	})
}

// A port that is being opened refuses too: once is not enough.
func TestOneRefusalIsNotEnough(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		term := l.Term()
		for _, f := range followers {
			c.sights.disconnect(l.id, f.id, syscall.ECONNREFUSED)
		}
		time.Sleep(2 * time.Millisecond) // the first dials have failed
		for _, f := range followers {
			c.sights.disconnect(l.id, f.id, nil)
		}
		time.Sleep(100 * time.Millisecond)
		for _, f := range followers {
			c.sights.connect(l.id, f.id)
			if f.probes("alive") == 0 || f.probes("suspected") != 0 {
				t.Errorf("%s: alive %d, suspected %d", f.id, f.probes("alive"), f.probes("suspected"))
			}
		}
		c.undisturbed(l, term)
	})
}

// What does not refuse is not gone: the timeout decides, as ever.
func TestABlackHoleIsLeftToTheTimeout(t *testing.T) {
	for name, err := range map[string]error{"silent": errHole, "resets": syscall.ECONNRESET} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
				c.isolate(l)
				for _, f := range followers {
					c.sights.disconnect(l.id, f.id, err)
				}
				began := time.Now()
				next := c.leader(l)
				if took := time.Since(began); took < 900*time.Millisecond {
					t.Errorf("%s leads after %v", next.id, took)
				}
				for _, f := range followers {
					if f.probes("unclear") == 0 || f.probes("suspected") != 0 {
						t.Errorf("%s: unclear %d, suspected %d", f.id, f.probes("unclear"), f.probes("suspected"))
					}
				}
			})
		})
	}
}

// A leader that stands still keeps its connections: nothing is looked at.
func TestAStoppedLeaderIsLeftToTheTimeout(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		c.unplug(l)
		c.leader(l)
		for _, f := range followers {
			if f.probes("unclear")+f.probes("suspected") != 0 || c.sights.askedBy(f.id, "") != 0 {
				t.Errorf("%s has looked", f.id)
			}
		}
	})
}

func TestResetsForTenMinutesChangeNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		term, f := l.Term(), followers[0]
		for i := range 6000 {
			c.sights.disconnect(l.id, f.id, []error{nil, syscall.ECONNRESET, nil}[i%3])
			time.Sleep(50 * time.Millisecond)
			c.sights.connect(l.id, f.id)
			time.Sleep(50 * time.Millisecond)
			if i%20 == 0 {
				if _, err := l.do(acquire(fmt.Sprint(i), "o", time.Hour)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if f.probes("alive") == 0 || f.probes("suspected") != 0 {
			t.Errorf("alive %d, suspected %d", f.probes("alive"), f.probes("suspected"))
		}
		c.undisturbed(l, term)
	})
}

// The leader's process was started again at once: it answers, and does not lead.
func TestALeaderThatWasRestartedIsReplacedAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		c.isolate(l)
		c.sights.of(l.id).Answer(nil)
		for _, f := range followers {
			c.sights.disconnect(l.id, f.id, nil)
		}
		c.succeeded(l, atOnce)
	})
}

func TestAFollowerThatIsGoneMattersToNobody(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		term, f := l.Term(), followers[1]
		c.sights.disconnect(f.id, l.id, syscall.ECONNREFUSED)
		c.sights.disconnect(f.id, followers[0].id, syscall.ECONNREFUSED)
		time.Sleep(10 * time.Second)
		for _, m := range c.members {
			if m.probes("suspected") != 0 || c.sights.askedBy(m.id, "") != 0 {
				t.Errorf("%s has looked", m.id)
			}
		}
		c.undisturbed(l, term)
	})
}

// Of those that see it gone the one with the best log stands, whatever its name.
func TestTheBetterLogStands(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		behind, ahead := followers[0], followers[1]
		c.net.mu.Lock()
		c.net.cut[link{l.id, behind.id}] = true
		c.net.mu.Unlock()
		if _, err := l.do(acquire("k", "o", time.Hour)); err != nil {
			t.Fatal(err)
		}
		c.die(l)
		if next := c.succeeded(l, atOnce); next != ahead || behind.probes("lost") != 0 {
			t.Errorf("%s leads; the one behind has stood %d times", next.id, behind.probes("lost"))
		}
	})
}

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
