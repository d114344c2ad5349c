package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/cluster"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

func TestNodesAreKilledAndStarted(t *testing.T) {
	s := start(t, real)
	client := s.client(s.Endpoints()...)
	s.acquire(client, "a")
	leader := s.leader(-1)
	s.do(s.Kill(leader))
	s.do(s.Kill(leader))
	if _, runs := s.PID(leader); runs {
		t.Error("it runs")
	}
	if conn, err := dial(s.Endpoints()[leader]); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v, %v; want it refused at once", conn, err)
	}
	s.leader(leader)
	s.acquire(client, "b")
	s.do(s.Start(leader))
	s.do(s.Start(leader))
	s.ready()
	s.eventually("all nodes tell the same digest", func() bool {
		told := map[uint64]map[string]string{}
		for _, d := range s.Digests(t.Context()) {
			if told[d.Index] == nil {
				told[d.Index] = map[string]string{}
			}
			told[d.Index][d.Node] = d.Sum
		}
		for _, sums := range told {
			if len(sums) == 3 && sums["n1"] == sums["n2"] && sums["n2"] == sums["n3"] {
				return true
			}
		}
		return false
	})
	if got := s.whats(leader); !slices.Equal(got, []string{"started", "killed", "started"}) {
		t.Errorf("%v", got)
	}
	if log, err := os.ReadFile(s.Log(leader)); err != nil || strings.Count(string(log), "is started") != 2 {
		t.Errorf("the log has not both runs: %v", err)
	}
}

func TestANodeIsAskedToEnd(t *testing.T) {
	s := start(t, real)
	leader := s.leader(-1)
	s.do(s.Terminate(leader))
	s.do(s.Start(leader)) // waits for the end of the run before
	s.ready()
	if got := s.whats(leader); !slices.Equal(got, []string{"started", "exited", "started"}) {
		t.Errorf("%v", got)
	}
	if detail := s.exit(leader); !strings.HasPrefix(detail, "exit code 0: ") || !strings.Contains(detail, "stopped") {
		t.Errorf("%q", detail)
	}
}

// Everything between nodes goes through the proxies: a leader that is cut off leads no
// more, and clients find the next one.
func TestALeaderIsCutOff(t *testing.T) {
	s := start(t, real)
	client := s.client(s.Endpoints()...)
	s.acquire(client, "a")
	leader := s.leader(-1)
	for other := range 3 {
		if other != leader {
			s.SetLink(leader, other, nemesis.LinkState{Cut: true})
			s.SetLink(other, leader, nemesis.LinkState{Cut: true})
		}
	}
	s.leader(leader)
	s.acquire(client, "b")
	for other := range 3 {
		if other != leader {
			s.SetLink(leader, other, nemesis.LinkState{})
			s.SetLink(other, leader, nemesis.LinkState{})
		}
	}
	s.ready()
}

// Clients too go through proxies, also when they follow what nodes say of the leader.
func TestClientsAreCutOff(t *testing.T) {
	s := start(t, real)
	leader := s.leader(-1)
	follower := (leader + 1) % 3
	s.SetClientLink(leader, nemesis.LinkState{Cut: true})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.client(s.Endpoints()[leader]).Get(ctx, lease.GetRequest{Key: "a"}); err == nil {
		t.Error("it answers through the cut")
	}
	s.acquire(s.client(s.Endpoints()[follower]), "a")
	status, err := s.client(s.Direct()[follower]).Status(s.within())
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range status.Members {
		if m.APIAddr != s.Endpoints()[i] {
			t.Errorf("clients are told that %s is at %s", m.ID, m.APIAddr)
		}
	}
	s.SetClientLink(leader, nemesis.LinkState{})
	s.acquire(s.client(s.Endpoints()[leader]), "b")
}

func TestNodesAndHoldersStandStill(t *testing.T) {
	s := start(t, real)
	leader := s.leader(-1)
	s.do(s.Stop(leader))
	s.do(s.Stop(leader))
	s.leader(leader)
	s.do(s.Continue(leader))
	s.do(s.Continue(leader))
	s.ready()
	if got := s.whats(leader); !slices.Equal(got, []string{"started", "stopped", "continued"}) {
		t.Errorf("%v", got)
	}
	s.do(s.Stop(leader))
	s.do(s.Kill(leader))
	s.do(s.Start(leader))
	s.ready()

	if runtime.GOOS != "linux" {
		return // how a process is can be seen in /proc only
	}
	sleeper := exec.Command("sleep", "1000")
	s.do(sleeper.Start())
	defer func() {
		_ = sleeper.Process.Kill()
		_ = sleeper.Wait()
	}()
	target := s.WithHolders([]cluster.Holder{cluster.PID(sleeper.Process.Pid)})
	if target.Holders() != 1 || s.Holders() != 0 {
		t.Error("the holders are not counted")
	}
	s.do(target.StopHolder(0))
	s.eventually("the holder stands still", func() bool { return stat(sleeper.Process.Pid) == "T" })
	s.do(target.ContinueHolder(0))
	s.eventually("the holder goes on", func() bool { return stat(sleeper.Process.Pid) == "S" })
	if err := s.StopHolder(0); err == nil {
		t.Error("a cluster alone has holders")
	}
}

// stat returns the state of a process as the kernel calls it.
func stat(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return rest[:1]
}

func TestWhatARealNodeCannotTake(t *testing.T) {
	s := start(t, real)
	if err := s.SetClock(0, nemesis.ClockState{Rate: 0.1}); err == nil {
		t.Error("the clock of a real node was set")
	}
	if err := s.SetDisk(0, nemesis.DiskFailing); err == nil {
		t.Error("the disk of a real node fails")
	}
	s.do(s.SetDisk(0, nemesis.DiskHealthy))
	all, err := nemesis.Parse([]string{"all"})
	s.do(err)
	for _, kind := range s.Controls().Possible(all) {
		if group := nemesis.GroupOf(kind); group == nemesis.Clock || group == nemesis.Disk {
			t.Errorf("%s is possible", kind)
		}
	}
	disks, err := nemesis.Parse([]string{"disk"})
	s.do(err)
	const inSnapshots = 1 // a death in the middle of one is a state of the disk, too
	if got := len((cluster.Controls{Clocks: true, Pauses: true}).Possible(all)); got != len(all)-len(disks)-inSnapshots {
		t.Errorf("%d of %d are possible without disks", got, len(all))
	}
}

// A real node's disk is made full where a small one can be mounted.
func TestAFullDisk(t *testing.T) {
	s := start(t, func(c *cluster.Config) { c.Mount = true })
	if !slices.Contains(s.Controls().Disks, nemesis.DiskFull) {
		t.Skip("this user cannot mount")
	}
	leader := s.leader(-1)
	client := s.client(s.Endpoints()...)
	s.do(s.SetDisk(leader, nemesis.DiskFull))
	s.eventually("another leads, which has space", func() bool {
		_, err := client.Acquire(s.within(), lease.AcquireRequest{Key: "a", Owner: "owner", TTL: 100 * time.Millisecond})
		node, ok := s.Leader(t.Context())
		return err == nil && ok && node != leader
	})
	s.do(s.SetDisk(leader, nemesis.DiskHealthy))
	s.ready()
	if got := s.whats(leader); !slices.Equal(got, []string{"started"}) {
		t.Errorf("%v", got)
	}
}

// Nothing survives a harness that is killed, not even a node that stands still.
func TestTheHarnessIsKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether a process is gone can be seen in /proc only")
	}
	for program, binary := range map[cluster.Program]string{cluster.Leasenode: binaries.Leasenode, cluster.Chaosnode: binaries.Chaosnode} {
		t.Run(string(program), func(t *testing.T) {
			harness := exec.Command(os.Args[0], binary, string(program))
			harness.Env = append(os.Environ(), harnessEnv+"="+t.TempDir())
			harness.Stderr = os.Stderr
			out, err := harness.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := harness.Start(); err != nil {
				t.Fatal(err)
			}
			var pids []int
			for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "running"; {
				pid, err := strconv.Atoi(lines.Text())
				if err != nil {
					t.Errorf("it says %q", lines.Text())
				}
				pids = append(pids, pid)
			}
			_ = harness.Process.Kill()
			_ = harness.Wait()
			if len(pids) != 3 {
				t.Fatalf("it has started %d nodes", len(pids))
			}
			s := &scene{t: t}
			s.eventually("all nodes are gone", func() bool {
				return !slices.ContainsFunc(pids, func(pid int) bool { state := stat(pid); return state != "" && state != "Z" })
			})
		})
	}
}

func TestWhatOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "n1", "old"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]cluster.Config{
		"an even number of nodes":  {Dir: t.TempDir(), Nodes: 2, Program: cluster.Leasenode, Binary: binaries.Leasenode},
		"an unknown program":       {Dir: t.TempDir(), Nodes: 1, Program: "etcd", Binary: binaries.Leasenode},
		"a broken real node":       {Dir: t.TempDir(), Nodes: 1, Program: cluster.Leasenode, Binary: binaries.Leasenode, Broken: "x"},
		"no folder":                {Nodes: 1, Program: cluster.Leasenode, Binary: binaries.Leasenode},
		"a folder that has a node": {Dir: dir, Nodes: 1, Program: cluster.Leasenode, Binary: binaries.Leasenode},
		"a binary that is missing": {Dir: t.TempDir(), Nodes: 1, Program: cluster.Leasenode, Binary: filepath.Join(dir, "none")},
	} {
		if c, err := cluster.Open(t.Context(), cfg); err == nil {
			t.Errorf("%s is not refused", name)
			_ = c.Close()
		}
	}
}

// A node that ends by itself at the start is told of.
func TestReadyTellsOfANodeThatEnded(t *testing.T) {
	c, err := cluster.Open(t.Context(), cluster.Config{
		Dir: t.TempDir(), Nodes: 1, Program: cluster.Chaosnode, Binary: binaries.Chaosnode, Broken: "no such way",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "no such way") {
		t.Error(err)
	}
}

// Five nodes survive two.
func TestFiveNodes(t *testing.T) {
	s := start(t, func(c *cluster.Config) { real(c); c.Nodes = 5 })
	leader := s.leader(-1)
	s.do(s.Kill(leader))
	s.do(s.Kill((leader + 1) % 5))
	s.leader(leader)
	s.acquire(s.client(s.Endpoints()...), "a")
	s.do(s.Start(leader))
	s.do(s.Start((leader + 1) % 5))
	s.ready()
}
