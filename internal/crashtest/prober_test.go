package crashtest_test

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"
)

// quiet fails the test if any node has looked at a leader as one whose connections have
// closed.
func (c *cluster) quiet(https []string, nodes ...int) {
	c.t.Helper()
	for _, i := range nodes {
		for _, result := range []string{"alive", "unclear", "suspected", "won", "lost"} {
			if n := probes(c.t, https[i], result); n != 0 {
				c.t.Errorf("n%d: %d times %s", i+1, n, result)
			}
		}
	}
}

// A leader that was stopped keeps its connections and its port: only the timeout says
// that it does nothing.
func TestAStoppedLeaderIsNotTakenForGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	https := c.probing()
	c.startAll()
	c.ready()
	leader := c.leader()
	one, two := (leader+1)%3, (leader+2)%3
	if err := c.procs[leader].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c.eventually("another leads", func(ctx context.Context) bool {
		status, err := c.dial(one, two).Status(ctx)
		return err == nil && status.Leader != "" && status.Leader != fmt.Sprintf("n%d", leader+1)
	})
	t.Logf("another leads after %v", time.Since(began).Round(time.Millisecond))
	c.quiet(https, one, two)
	if err := c.procs[leader].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.agree()
}

func TestAFollowerThatRestartsChangesNothing(t *testing.T) {
	c := newCluster(t, 3)
	https := c.probing()
	c.startAll()
	c.ready()
	leader := c.leader()
	one, two := (leader+1)%3, (leader+2)%3
	before, err := c.dial(leader).Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c.kill(one)
		c.start(one)
		c.agree()
	}
	after, err := c.dial(leader).Status(t.Context())
	if err != nil || after.Term != before.Term || after.Leader != before.Leader {
		t.Errorf("term %d under %s, then term %d under %s, %v", before.Term, before.Leader, after.Term, after.Leader, err)
	}
	c.quiet(https, leader, one, two)
}

// A follower that was stopped for a while is behind when the leader is killed: the one
// with the better log leads, at once, whatever their names.
func TestTheBetterLogLeadsAfterAKill(t *testing.T) {
	for _, nodes := range []int{3, 5} {
		c := newCluster(t, nodes)
		c.startAll()
		c.ready()
		leader := c.leader()
		behind := (leader + 1) % nodes
		for i := range nodes { // the one that would stand if all logs were equal
			if i != leader {
				behind = i
				break
			}
		}
		stopped := c.procs[behind].cmd.Process
		if err := stopped.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		w := c.startWriters(4)
		began := time.Now()
		c.eventually("writes go on", func(context.Context) bool { return w.successes(began) > 200 })
		w.end()
		c.kill(leader)
		if err := stopped.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		c.ready()
		if next := c.leader(); next == behind {
			t.Errorf("%d nodes: n%d leads, which was behind", nodes, next+1)
		}
		won := c.count(signOfWin)
		if won != 1 {
			t.Errorf("%d nodes: %d nodes took the leader's place", nodes, won)
		}
		c.start(leader)
		c.agree()
	}
}
