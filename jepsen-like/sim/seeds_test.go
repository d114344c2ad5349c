package sim_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/jepsen-like/report"
	"github.com/leasenode/leasenode/jepsen-like/sim"
	"github.com/leasenode/leasenode/raftnet/disk"
)

var (
	oneSeed    = flag.Uint64("seed", 0, "run this seed only, -repeat times")
	firstSeed  = flag.Uint64("first", 1, "the first seed")
	seeds      = flag.Uint64("seeds", defaultSeeds, "how many seeds to run")
	nodes      = flag.Int("nodes", 0, "how many nodes; 0 for 3, and 5 with every fourth seed")
	logStore   = flag.String("log-store", "", "how the nodes keep their logs, bolt or wal; empty for what each seed says")
	length     = flag.Duration("length", 20*time.Second, "how long each seed's schedule is, in simulated time")
	repeat     = flag.Int("repeat", 10, "how often to run the seed of -seed: the order in which goroutines run is not in the seed")
	out        = flag.String("out", "", "an existing folder for the history, schedule and report of each seed that fails")
	shrinkTime = flag.Duration("shrink", 0, "look for a smaller schedule that still fails, for as long as this")
	schedule   = flag.String("schedule", "", "a file with a schedule to run, -repeat times, in place of a seed's")
)

// TestSeeds has clusters go through schedules of faults, one for each seed.
func TestSeeds(t *testing.T) {
	switch {
	case *schedule != "":
		text, err := os.ReadFile(*schedule)
		if err != nil {
			t.Fatal(err)
		}
		s, err := nemesis.Decode(text)
		if err != nil {
			t.Fatal(err)
		}
		again(t, s)
	case *oneSeed != 0:
		again(t, plan(*oneSeed))
	default:
		for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				try(t, plan(seed), "")
			})
		}
	}
}

// plan returns the schedule of a seed.
func plan(seed uint64) nemesis.Schedule {
	n := *nodes
	if n == 0 {
		n = 3
		if seed%4 == 0 {
			n = 5
		}
	}
	return sim.Plan(seed, n, *length)
}

// again runs one schedule several times.
func again(t *testing.T, s nemesis.Schedule) {
	for i := range *repeat {
		t.Run(fmt.Sprintf("seed=%d/%d", s.Seed, i+1), func(t *testing.T) {
			t.Parallel()
			try(t, s, fmt.Sprintf("-%d", i+1))
		})
	}
}

// try runs a schedule, judges what happened, and fails the test if it has to.
func try(t *testing.T, s nemesis.Schedule, suffix string) {
	dir := ""
	if *out != "" {
		dir = filepath.Join(*out, fmt.Sprintf("seed-%d%s", s.Seed, suffix))
	}
	v := simulate(t, s, dir)
	if v.Status() == check.Pass {
		if dir != "" {
			_ = os.RemoveAll(dir)
		}
		return
	}
	t.Errorf("caught by %s\n%sagain: go test ./jepsen-like/sim -run 'TestSeeds$' -seed %d -nodes %d -length %v",
		strings.Join(failed(v), ", "), v.Summary(), s.Seed, s.Nodes, *length)
	if *shrinkTime > 0 {
		shrink(t, s, v)
	}
}

// simulate runs a schedule and judges it; with a folder, it leaves everything there.
func simulate(t *testing.T, s nemesis.Schedule, dir string) check.Verdict {
	o := sim.Options{Schedule: s, Dir: memory(t), Log: disk.LogKind(*logStore)}
	closeOut := func() error { return nil }
	if dir != "" {
		file, err := prepare(dir, s)
		if err != nil {
			t.Fatal(err)
		}
		o.Out, closeOut = file, file.Close
	}
	var run history.Run
	var failure error
	synctest.Test(t, func(*testing.T) { run, failure = sim.Run(o) })
	if err := errors.Join(failure, closeOut()); err != nil {
		t.Errorf("seed %d: %v", s.Seed, err)
	}
	v := sim.Judge(run)
	if dir != "" {
		if err := report.Write(dir, run, v); err != nil {
			t.Error(err)
		}
	}
	return v
}

// prepare makes the folder of a run, and the file of its history in it.
func prepare(dir string, s nemesis.Schedule) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	text, err := s.Encode()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "schedule.json"), text, 0o644); err != nil {
		return nil, err
	}
	return os.Create(filepath.Join(dir, "history.jsonl"))
}

// memory returns a folder in memory, where there is one.
func memory(t *testing.T) string {
	const shm = "/dev/shm"
	if info, err := os.Stat(shm); err == nil && info.IsDir() {
		return shm
	}
	return t.TempDir()
}

// failed returns the names of the checks that failed, or could not find out.
func failed(v check.Verdict) []string {
	var names []string
	for _, c := range v.Checks {
		if c.Status == check.Fail || c.Status == check.Unknown {
			names = append(names, c.Name)
		}
	}
	return names
}

// shrinkTries is how often a smaller schedule may hold before it is taken as one that
// does not fail.
const shrinkTries = 5

// shrink looks for a smaller schedule that fails in the same way, and prints it.
func shrink(t *testing.T, s nemesis.Schedule, found check.Verdict) {
	ctx, cancel := context.WithTimeout(context.Background(), *shrinkTime)
	defer cancel()
	small := nemesis.Shrink(ctx, s, func(smaller nemesis.Schedule) bool {
		for range shrinkTries {
			if ctx.Err() != nil {
				return false
			}
			for _, c := range simulate(t, smaller, "").Checks {
				if c.Status == check.Fail && found.Check(c.Name).Status == check.Fail {
					return true
				}
			}
		}
		return false
	})
	text, err := small.Encode()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the smallest schedule found that fails, for -schedule FILE:\n%s", text)
}
