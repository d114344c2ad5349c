package raftnet_test

import (
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// The port of the leader refuses everyone, while its connections live: it does too.
func TestALeaderThatIsConnectedIsNotGone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		term := l.Term()
		c.sights.mu.Lock()
		c.sights.fails[link{followers[1].id, l.id}] = syscall.ECONNREFUSED
		c.sights.mu.Unlock()
		c.sights.disconnect(l.id, followers[0].id, syscall.ECONNREFUSED)
		time.Sleep(10 * time.Second)
		if followers[0].probes("denied") == 0 {
			t.Error("it was not denied")
		}
		c.undisturbed(l, term)
	})
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
	for name, err := range map[string]error{
		"silent": errHole, "resets": syscall.ECONNRESET,
		"an earlier version": &raftnet.RefusedError{Reason: "the purpose is not known here"},
	} {
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

// A leader that has stepped down says so itself.
func TestALeaderThatHasSteppedDownIsReplacedAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		c.isolate(l)
		for l.Elected() {
			time.Sleep(time.Millisecond)
		}
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
