package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// wipe empties the directory of node i, which does not run.
func (c *cluster) wipe(i int) {
	c.t.Helper()
	if err := os.RemoveAll(c.dirs[i]); err != nil {
		c.t.Fatal(err)
	}
}

// logged waits until node i has logged text.
func (c *cluster) logged(i int, text string) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("n%d logs %q", i+1, text), func(context.Context) bool {
		return strings.Contains(c.procs[i].log.String(), text)
	})
}

// leaderless checks that node i, asked directly, knows no leader and answers no
// linearizable read, for as long as an election takes.
func (c *cluster) leaderless(i int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := c.dial(i).Get(ctx, lease.GetRequest{Key: "probe"}); !errors.Is(err, lease.ErrUnavailable) {
		c.t.Errorf("n%d answers: %v", i+1, err)
	}
}

// A node with an empty disk and one that lags come back first: nothing can be decided
// without the third, and nothing is lost when it comes.
func TestAWipedAndALaggingNodeDecideNothing(t *testing.T) {
	c := startCluster(t, 3)
	c.kill(1)
	l := c.startLoad("before", 4)
	l.waitFor(50)
	acked := l.end()
	c.kill(0)
	c.kill(2)
	c.wipe(0)
	c.start(0)
	c.start(1)
	if code, log := c.ended(0); code == 0 || !strings.Contains(log, "another data directory") || !strings.Contains(log, "put it back") {
		t.Errorf("the wiped node ended with %d:\n%s", code, tail(log, 1000))
	}
	c.leaderless(1)
	c.start(2)
	c.ready()
	c.checkKept(acked)
}

func TestTwoWipedNodesOfThreeFoundNothing(t *testing.T) {
	c := startCluster(t, 3)
	l := c.startLoad("before", 4)
	l.waitFor(20)
	l.end()
	c.kill(0)
	c.kill(1)
	c.wipe(0)
	c.wipe(1)
	c.start(0)
	c.start(1)
	for i := range 2 {
		if code, log := c.ended(i); code == 0 || !strings.Contains(log, "another data directory") {
			t.Errorf("n%d ended with %d:\n%s", i+1, code, tail(log, 1000))
		}
	}
	c.leaderless(2)
}

// While a cluster is being founded each node says whom it is waiting for; one that is
// wiped meanwhile is met again under its new incarnation.
func TestWipedBetweenTheHelloAndTheFounding(t *testing.T) {
	c := newCluster(t, 3)
	c.start(0)
	c.start(1)
	awaits := func(want ...string) {
		t.Helper()
		c.eventually(fmt.Sprintf("n1 awaits %v", want), func(ctx context.Context) bool {
			status, err := c.dial(0).Status(ctx)
			return err == nil && slices.Equal(status.Awaited, want) && len(status.Members) == 3 && status.Leader == ""
		})
	}
	awaits("n3")
	c.logged(0, "the cluster is not founded yet")
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := c.dial(0).Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute}); !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrOutcomeUnknown) {
		t.Errorf("acquire while the cluster is being founded: %v", err)
	}
	c.kill(1)
	c.wipe(1)
	c.start(1)
	c.start(2)
	c.ready()
	if status, err := c.dial(0).Status(t.Context()); err != nil || len(status.Awaited) != 0 {
		t.Errorf("after the founding: %+v, %v", status, err)
	}
	c.agree()
}

// Two clusters whose addresses overlap refuse each other, whoever is founded.
func TestClustersRefuseEachOther(t *testing.T) {
	first := startCluster(t, 3)
	second := newCluster(t, 3)
	second.peers, second.apis, second.list = first.peers, slices.Clone(second.apis), first.list
	first.kill(0)
	second.start(0) // not founded: it hears of the first cluster
	if code, log := second.ended(0); code == 0 || !strings.Contains(log, "another data directory") {
		t.Errorf("it ended with %d:\n%s", code, tail(log, 1000))
	}
	for i := range 3 {
		first.kill(i)
	}
	second.startAll()
	second.ready()
	second.kill(0)
	first.apis = second.apis
	first.start(0)
	first.logged(0, "a node refuses this one")
	first.logged(0, "it is of cluster")
	first.leaderless(0)
	if _, err := second.dial(1, 2).Acquire(t.Context(), lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute}); err != nil {
		t.Errorf("the second cluster: %v", err)
	}
}

func TestADirectoryOfAnotherNodeIsRefused(t *testing.T) {
	c := startCluster(t, 3)
	c.kill(0)
	c.kill(1)
	c.dirs[1] = c.dirs[0]
	c.start(1)
	if code, log := c.ended(1); code == 0 || !strings.Contains(log, `belongs to node \"n1\"`) && !strings.Contains(log, `belongs to node "n1"`) {
		t.Errorf("it ended with %d:\n%s", code, tail(log, 1000))
	}
}

func (c *cluster) copyOf(i int) (dir string) {
	c.t.Helper()
	dir = c.t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(c.dirs[i])); err != nil {
		c.t.Fatal(err)
	}
	return dir
}

// A copy of a node's directory on a second machine, beside the first: the others
// refuse it, and the first goes on.
func TestACopyBesideTheFirst(t *testing.T) {
	c := startCluster(t, 3)
	l := c.startLoad("before", 4)
	l.waitFor(50)
	acked := l.end()
	second := newCluster(t, 1)
	second.dirs[0] = c.copyOf(2)
	second.list = strings.Replace(c.list, "n3="+c.peers[2], "n3="+second.peers[0], 1)
	second.flags = func(int) []string { return []string{"--id", "n3"} }
	second.start(0)
	second.logged(0, "a node refuses this one")
	second.logged(0, "stop one of the two")
	c.checkKept(acked)
	c.agree()
}

// An older copy in the place of a directory is refused by those who met a later start.
func TestAnOlderCopyInPlace(t *testing.T) {
	c := startCluster(t, 3)
	c.kill(2)
	older := c.copyOf(2)
	c.start(2)
	c.agree()
	c.kill(2)
	l := c.startLoad("meanwhile", 4)
	l.waitFor(20)
	acked := l.end()
	c.dirs[2] = older
	c.start(2)
	c.logged(2, "a node refuses this one")
	c.checkKept(acked)
}

func TestAnotherListAfterTheFoundingIsOnlyLogged(t *testing.T) {
	c := startCluster(t, 3)
	for i := range 3 {
		c.kill(i)
	}
	list := c.list
	c.list = strings.Replace(list, "n3="+c.peers[2], "n4="+c.freeAddr(), 1)
	c.start(0)
	c.start(1)
	c.ready()
	c.logged(0, "read at founding only")
	c.list = list
}

// Addresses may be names, and IPv6 in brackets.
func TestAddressesByNameAndIPv6(t *testing.T) {
	for _, host := range []string{"localhost", "[::1]"} {
		t.Run(host, func(t *testing.T) {
			ln, err := net.Listen("tcp", host+":0")
			if err != nil {
				t.Skipf("this machine cannot listen on %s: %v", host, err)
			}
			_ = ln.Close()
			c := newCluster(t, 3)
			for i := range 3 {
				for _, addr := range []*string{&c.peers[i], &c.apis[i]} {
					_, port, _ := net.SplitHostPort(*addr)
					c.list = strings.Replace(c.list, *addr, host+":"+port, 1)
					*addr = host + ":" + port
				}
			}
			c.startAll()
			c.ready()
			c.agree()
		})
	}
}
