//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/faulty"
	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/cluster"
)

func TestLeasenodeHolds(t *testing.T) {
	t.Parallel()
	r := chaosWith(t, t.Context(), "--time", "15s", "--seed", "11", "--intensity", "1")
	r.expect(t, exitPass, "PASS", "  pass     watched", "left out: kill-snapshot, clock-fast, ", "disk-hanging, which nobody can do to leasenode from outside", "again:  go run ./jepsen-like --chaosnode", "--seed 11", "recovery: 3 times")
	for _, name := range []string{historyFile, scheduleFile, "report.html", "nodes/n1.log", "nodes/n3.log", "holders/h3.log"} {
		if info, err := os.Stat(filepath.Join(r.dir, name)); err != nil || info.Size() == 0 && !strings.HasPrefix(name, "holders") {
			t.Errorf("%s: %v", name, err)
		}
	}
	again := command(t.Context(), "--judge", r.dir)
	again.expect(t, exitPass, "PASS", "--seed 11", "left out: kill-snapshot, ")
	table := command(t.Context(), "--table", r.dir, r.dir)
	table.expect(t, exitPass, "| fault | times | runs | recorded |", "| all runs | ", " | 2 | ")
	replayed := chaosWith(t, t.Context(), "--schedule", filepath.Join(r.dir, scheduleFile), "--clients", "2")
	replayed.expect(t, exitPass, "PASS", "--seed 11")
	same(t, filepath.Join(r.dir, scheduleFile), filepath.Join(replayed.dir, scheduleFile))
	noneLeft(t, r.dir)
}

// same fails the test unless two files have the same in them.
func same(t *testing.T, a, b string) {
	t.Helper()
	first, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	second, err := os.ReadFile(b)
	if err != nil || string(first) != string(second) {
		t.Errorf("%s and %s differ (%v)", a, b, err)
	}
}

// noneLeft fails the test if a node of a run is left running.
func noneLeft(t *testing.T, dir string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "nodes", "*", "node.pid"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		if syscall.Kill(pid, 0) == nil {
			t.Errorf("%s: process %d is left", path, pid)
		}
	}
}

func TestClocksAndDisksNeedOurOwnNode(t *testing.T) {
	t.Parallel()
	chaosWith(t, t.Context(), "--time", "12s", "--seed", "4", "--faults", "clock,disk", "--intensity", "1").
		expect(t, exitPass, "3 nodes of chaosnode", "PASS")
}

func TestNodesAreKilledInTheMiddleOfSnapshots(t *testing.T) {
	t.Parallel()
	r := chaosWith(t, t.Context(), "--time", "20s", "--seed", "23", "--faults", "kill-snapshot,slow-restart")
	r.expect(t, exitPass, "3 nodes of chaosnode", "PASS", "snapshots: ")
	var taken, received, killed int
	if _, rest, ok := strings.Cut(r.stdout, "snapshots: "); ok {
		_, err := fmt.Sscanf(rest, "%d taken, %d received; a node was killed in the middle of one %d times", &taken, &received, &killed)
		if err != nil || taken == 0 || killed == 0 {
			t.Errorf("%d taken, %d received, %d killed (%v)", taken, received, killed, err)
		}
	}
	noneLeft(t, r.dir)
}

// caughtBy says which check has to catch a broken node: that of the promise it breaks. Of
// several, one has to.
var caughtBy = map[string][]string{
	faulty.StaleReads:      {"fresh"},
	faulty.ConstantEpoch:   {"epochs"},
	faulty.RenewsForAnyone: {"linearizable"},
	faulty.FastClock:       {"clock"},
	faulty.DropsEntry:      {"digests", "linearizable", "stale-reads"}, // it soon ends itself: its digests may not be heard
	faulty.DropsUnnoticed:  {"stale-reads", "watched"},                 // whoever looks at that node first
	faulty.EarlyAck:        {"linearizable"},
	faulty.ForgetsRequests: {"linearizable"},
	faulty.FloorBack:       {"floor", "acknowledged"},
	faulty.DoubleGrant:     {"exclusion"},
	faulty.LosesEvents:     {"watched"},
	faulty.RepeatsEvents:   {"watched"},
}

func TestBrokenNodesAreCaught(t *testing.T) {
	for _, mode := range faulty.Modes() {
		t.Run(mode.Name, func(t *testing.T) {
			t.Parallel()
			r := chaosWith(t, t.Context(), "--broken", mode.Name, "--faults", "none", "--time", "5s", "--recovery", "2s",
				"--seed", "5", "--pause", "10ms", "--keys", "2")
			r.expect(t, exitFail, "FAIL")
			if !slices.ContainsFunc(caughtBy[mode.Name], func(check string) bool { return strings.Contains(r.stdout, "  fail     "+check) }) {
				t.Errorf("not caught by %q:\n%s", caughtBy[mode.Name], r.stdout)
			}
			noneLeft(t, r.dir)
		})
	}
}

// A clock that is too fast does harm where a holder cannot renew.
func TestClocksBeyondTheAssumptionAreCaught(t *testing.T) {
	t.Parallel()
	chaosWith(t, t.Context(), "--faults", "clock-beyond", "--time", "9s", "--seed", "2").expect(t, exitFail, "  fail     clock")
}

func TestARunningClusterIsJudged(t *testing.T) {
	t.Parallel()
	programsOf(t)
	c, err := cluster.Open(t.Context(), cluster.Config{
		Dir: filepath.Join(t.TempDir(), "nodes"), Nodes: 3, Program: cluster.Leasenode, Binary: built.Leasenode,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	endpoints := strings.Join(c.Direct(), ",")
	for range 2 { // also one that was used before
		chaosWith(t, t.Context(), "--endpoints", endpoints, "--time", "3s", "--seed", "1").
			expect(t, exitPass, "PASS", "the cluster at "+endpoints, "0 faults")
	}
	if _, running := c.PID(0); !running {
		t.Error("a node of the cluster was ended")
	}
}

func TestAnEndBeforeItsTime(t *testing.T) {
	t.Parallel()
	programsOf(t)
	ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	began := time.Now()
	r := chaosWith(t, ctx, "--time", "10m", "--seed", "3", "--intensity", "3")
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("it took %v to end", took)
	}
	switch {
	case r.code == exitBroke: // the turn came too late
		r.expect(t, exitBroke, "ended before the cluster served")
	default:
		r.expect(t, exitPass, "ended before its time", "PASS")
	}
	noneLeft(t, r.dir)
}

func TestAnUnknownIsNoPass(t *testing.T) {
	if err := outcome(check.Verdict{Checks: []check.Check{{Status: check.Unknown}, {Status: check.Pass}}}); err == nil {
		t.Error("a run of which something is unknown passes")
	}
}
