package crashtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
)

var kills = flag.Int("kills", 20, "how often TestKilledAtRandomInstants kills a node")

// A node is killed at a random instant under load, and started again, over and over:
// after each time all nodes agree, and at the end nothing acknowledged is missing.
func TestKilledAtRandomInstants(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	l := c.startLoad("load", 8)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for kill := range *kills {
		l.waitFor(20 * (kill + 1))
		victim := r.IntN(3)
		pause := time.NewTimer(time.Duration(r.IntN(50_000)) * time.Microsecond)
		<-pause.C // where in a write it is hit is left to chance
		c.kill(victim)
		c.start(victim)
		c.agree()
	}
	c.checkKept(l.end())
	c.agree()
}

// leader returns the number of the node that leads.
func (c *cluster) leader() int {
	c.t.Helper()
	leader := -1
	client := c.dial()
	c.eventually("a leader", func(ctx context.Context) bool {
		status, err := client.Status(ctx)
		if err != nil {
			return false
		}
		for i := range c.procs {
			if fmt.Sprintf("n%d", i+1) == status.Leader {
				leader = i
			}
		}
		return leader >= 0
	})
	return leader
}

// A node that was stopped for half a minute, by SIGSTOP, is not taken by its watchdog for
// one whose disk hangs: it goes on.
func TestAStoppedNodeGoesOn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, 3)
	stopped := c.leader()
	l := c.startLoad("load", 4)
	l.waitFor(20)
	if err := c.procs[stopped].cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	c.eventually("another leads", func(ctx context.Context) bool {
		status, err := c.dial((stopped+1)%3, (stopped+2)%3).Status(ctx)
		return err == nil && status.Leader != "" && status.Leader != fmt.Sprintf("n%d", stopped+1)
	})
	rest := time.NewTimer(time.Until(began.Add(30 * time.Second)))
	<-rest.C // the stop itself is what is tested
	if err := c.procs[stopped].cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	c.agree()
	c.checkKept(l.end())
	select {
	case <-c.procs[stopped].exited:
		t.Errorf("it ended:\n%s", tail(c.procs[stopped].log.String(), 1000))
	default:
	}
}

// startFaulty returns a cluster of nodes on disks that can be made to hang or to fail
// (see TestMain), under load, and the number of its leader.
func startFaulty(t *testing.T) (*cluster, *load, int) {
	t.Helper()
	c := newCluster(t, 3)
	c.hangable = true
	c.startAll()
	c.ready()
	l := c.startLoad("load", 4)
	l.waitFor(20)
	return c, l, c.leader()
}

// A leader whose disk hangs in a write ends itself, with its own exit code, and another
// leads within seconds.
func TestALeaderWhoseDiskHangsIsGone(t *testing.T) {
	t.Parallel()
	c, l, leader := startFaulty(t)
	began := time.Now()
	if err := c.procs[leader].cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if code, log := c.ended(leader); code != node.ExitHung {
		t.Errorf("it ended with %d:\n%s", code, tail(log, 1000))
	}
	t.Logf("gone after %v", time.Since(began).Round(100*time.Millisecond))
	c.ready()
	t.Logf("another serves after %v", time.Since(began).Round(100*time.Millisecond))
	c.start(leader)
	c.agree()
	c.checkKept(l.end())
}

// A failed fsync ends the node with its own exit code; what it had acknowledged is kept.
func TestAFailedWriteEndsTheNode(t *testing.T) {
	t.Parallel()
	c, l, leader := startFaulty(t)
	if err := c.procs[leader].cmd.Process.Signal(syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	if code, log := c.ended(leader); code != node.ExitStorage {
		t.Errorf("it ended with %d:\n%s", code, tail(log, 1000))
	}
	c.ready()
	c.start(leader)
	c.agree()
	c.checkKept(l.end())
}

// The disk of the leader fills up: it says so, steps down, and goes on by itself when
// there is space again; the others serve all the time, and nothing is lost.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", small).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", small).Run() })
	c := newCluster(t, 3)
	t.Cleanup(func() { c.kill(0) }) // before the umount
	c.dirs[0] = filepath.Join(small, "n1")
	c.startAll()
	c.ready()
	l := c.startLoad("load", 4)
	l.waitFor(20)
	ballast := filepath.Join(small, "ballast")
	fill(t, ballast, 20<<20)
	c.logged(0, "full")
	fill(t, ballast, 0)
	c.eventually("another than the full node leads", func(ctx context.Context) bool {
		status, err := c.dial(1, 2).Status(ctx)
		return err == nil && status.Leader != "" && status.Leader != "n1"
	})
	l.waitFor(200)
	first := c.procs[0]
	select {
	case <-first.exited:
		t.Errorf("the full node ended:\n%s", tail(first.log.String(), 2000))
	default:
	}
	c.kill(0)
	second := c.start(0) // a start on a disk that is full to the last byte
	c.logged(0, "full")
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	acked := l.end()
	c.agree()
	c.checkKept(acked)
	select {
	case <-second.exited:
		t.Errorf("the node that was started on a full disk ended:\n%s", tail(second.log.String(), 2000))
	default:
	}
}

// fill writes to a file until no more than left bytes are free in its file system.
func fill(t *testing.T, path string, left uint64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); ; {
		var fs syscall.Statfs_t
		if err := syscall.Statfs(filepath.Dir(path), &fs); err != nil {
			t.Fatal(err)
		}
		if fs.Bavail*uint64(fs.Bsize) <= left {
			return
		}
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// All disks are full: nothing is granted, nothing ends, and all goes on when there is
// space again.
func TestAllDisksFull(t *testing.T) {
	t.Parallel()
	small := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=400m", "tmpfs", small).CombinedOutput(); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", "-l", small).Run() })
	c := newCluster(t, 3)
	for i := range c.dirs {
		t.Cleanup(func() { c.kill(i) })
		c.dirs[i] = filepath.Join(small, fmt.Sprintf("n%d", i+1))
	}
	c.startAll()
	c.ready()
	l := c.startLoad("load", 4)
	l.waitFor(50)
	ballast := filepath.Join(small, "ballast")
	fill(t, ballast, 20<<20)
	for i := range c.procs {
		c.logged(i, "full")
	}
	fill(t, ballast, 0)
	c.eventually("nothing is granted", func(context.Context) bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.dial().Acquire(ctx, lease.AcquireRequest{Key: "full", Owner: "o", TTL: time.Hour})
		return errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrOutcomeUnknown)
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	c.ready()
	c.checkKept(l.end())
	c.agree()
}
