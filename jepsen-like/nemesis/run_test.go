package nemesis_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

func sinceNow() func() time.Duration {
	origin := time.Now()
	return func() time.Duration { return time.Since(origin) }
}

// onePhase is a schedule of steps that has ten seconds for faults and five for rest.
func onePhase(steps ...nemesis.Step) nemesis.Schedule {
	return nemesis.Schedule{
		Nodes: 5, Holders: 1, Time: 15 * time.Second, Steps: steps,
		Phases: []nemesis.Phase{{Heal: 10 * time.Second, Until: 15 * time.Second}},
	}
}

func TestEveryPlanIsDoneAndUndone(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			c := newTarget(3+int(seed%3), 2)
			c.leader = int(seed % 3)
			plan := nemesis.Plan(nemesis.Options{Seed: seed, Nodes: c.nodes, Holders: 2, Time: time.Minute, Kinds: all(t), Intensity: 3})
			var faults []history.Fault
			healed := 0
			now := sinceNow()
			err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{
				Now:    now,
				Fault:  func(f history.Fault) { faults = append(faults, f) },
				Healed: func(context.Context, time.Duration) { c.healthy(t); healed++ },
			})
			c.healthy(t)
			if err != nil || healed != len(plan.Phases) || len(faults) != len(plan.Steps) || now() < plan.Time || now() > plan.Time+time.Second {
				t.Errorf("seed %d: %v; %d healed, %d of %d faults, after %v", seed, err, healed, len(faults), len(plan.Steps), now())
			}
			for _, f := range faults {
				if f.Until < f.From || len(f.Targets) == 0 {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

func TestPartitionsCutWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		kind  nemesis.Kind
		nodes []int
		cut   string // from>to
	}{
		{nemesis.Isolate, []int{1}, "0>1 1>0 1>2 1>3 1>4 2>1 3>1 4>1"},
		{nemesis.LoseIncoming, []int{1}, "0>1 2>1 3>1 4>1"},
		{nemesis.LoseOutgoing, []int{1}, "1>0 1>2 1>3 1>4"},
		{nemesis.Split, []int{1, 3}, "0>1 0>3 1>0 1>2 1>4 2>1 2>3 3>0 3>2 3>4 4>1 4>3"},
		{nemesis.Bridge, []int{0, 1, 2, 3, 4}, "1>3 1>4 2>3 2>4 3>1 3>2 4>1 4>2"},
		{nemesis.Ring, []int{0, 1, 2, 3, 4}, "0>2 0>3 1>3 1>4 2>0 2>4 3>0 3>1 4>1 4>2"},
	} {
		synctest.Test(t, func(t *testing.T) {
			target := newTarget(5, 1)
			var cut []string
			plan := onePhase(nemesis.Step{Kind: c.kind, For: time.Second, Nodes: c.nodes})
			err := nemesis.Run(t.Context(), plan, target, nemesis.Hooks{Now: sinceNow(), Active: func(active []history.Fault) {
				if len(active) == 0 {
					return
				}
				for link, state := range target.links {
					if state.Cut {
						cut = append(cut, string(rune('0'+link[0]))+">"+string(rune('0'+link[1])))
					}
				}
			}})
			slices.Sort(cut)
			if got := strings.Join(cut, " "); err != nil || got != c.cut {
				t.Errorf("%s: %v; cuts\n%s, want\n%s", c.kind, err, got, c.cut)
			}
		})
	}
}

func TestFaultsThatOverlapAreBothThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(5, 1)
		plan := onePhase(
			nemesis.Step{Kind: nemesis.Latency, At: 0, For: 4 * time.Second, Link: nemesis.LinkState{Delay: time.Second}},
			nemesis.Step{Kind: nemesis.Latency, At: 0, For: 500 * time.Millisecond, Nodes: []int{4}, Link: nemesis.LinkState{Delay: time.Minute}},
			nemesis.Step{Kind: nemesis.KillNode, At: time.Second, For: 2 * time.Second, Nodes: []int{1}},
			nemesis.Step{Kind: nemesis.Isolate, At: time.Second, For: time.Second, Nodes: []int{0}},
			nemesis.Step{Kind: nemesis.PauseNode, At: 1500 * time.Millisecond, For: 3 * time.Second, Nodes: []int{1}},
			nemesis.Step{Kind: nemesis.KillMajority, At: 2 * time.Second, For: 500 * time.Millisecond, Nodes: []int{0, 1, 2}},
		)
		err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{Now: sinceNow()})
		c.healthy(t)
		var processes []string
		for _, line := range c.log {
			if !strings.Contains(line, "link") {
				processes = append(processes, line)
			}
		}
		want := []string{"1s kill 1", "2s kill 0", "2s kill 2", "2.5s start 0", "2.5s start 2", "3s start 1", "3s stop 1", "4.5s continue 1"}
		if err != nil || !slices.Equal(processes, want) {
			t.Errorf("%v; was done:\n%s\nwant:\n%s", err, strings.Join(processes, "\n"), strings.Join(want, "\n"))
		}
		if line := "0s link 0 4 {Cut:false Delay:1m1s Jitter:0s BytesPerSecond:0 ResetEvery:0s HalfOpen:false}"; !slices.Contains(c.log, line) {
			t.Errorf("no %q", line)
		}
		if line := "1s link 0 1 {Cut:true Delay:1s Jitter:0s BytesPerSecond:0 ResetEvery:0s HalfOpen:false}"; !slices.Contains(c.log, line) {
			t.Errorf("no %q", line)
		}
		if line := "2s link 0 1 {Cut:false Delay:1s Jitter:0s BytesPerSecond:0 ResetEvery:0s HalfOpen:false}"; !slices.Contains(c.log, line) {
			t.Errorf("no %q", line)
		}
	})
}

// A node that stood still when it was killed stands still again once it was started.
func TestWhatIsStartedIsStoppedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(5, 1)
		plan := onePhase(
			nemesis.Step{Kind: nemesis.PauseNode, For: 4 * time.Second, Nodes: []int{0}},
			nemesis.Step{Kind: nemesis.KillNode, At: time.Second, For: time.Second, Nodes: []int{0}},
		)
		err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{Now: sinceNow()})
		if want := []string{"0s stop 0", "1s kill 0", "2s start 0", "2s stop 0", "4s continue 0"}; err != nil || !slices.Equal(c.log, want) {
			t.Errorf("%v; was done %v, want %v", err, c.log, want)
		}
	})
}

func TestTheLeaderIsWhoLeadsWhenAStepBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(5, 1)
		plan := onePhase(
			nemesis.Step{Kind: nemesis.KillLeader, For: time.Second, Nodes: []int{4}, Leader: true},
			nemesis.Step{Kind: nemesis.Transfer, At: 2 * time.Second, For: time.Second, Nodes: []int{4}, Leader: true},
		)
		var faults []history.Fault
		err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{Now: sinceNow(), Fault: func(f history.Fault) {
			faults = append(faults, f)
			c.leader = 2
		}})
		if err != nil || len(faults) != 2 || faults[0].Targets[0] != "n5" || faults[1].Targets[0] != "n3" {
			t.Errorf("%v; %+v", err, faults)
		}
		if !slices.Contains(c.log, "0s kill 4") || !slices.Contains(c.log, "2s terminate 2") || !slices.Contains(c.log, "3s start 2") {
			t.Errorf("was done: %v", c.log)
		}
	})
}

func TestWhatComesAndGoesDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(5, 1)
		plan := onePhase(nemesis.Step{Kind: nemesis.Restarts, For: 3 * time.Second, Nodes: []int{0}, Every: time.Second})
		if err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{Now: sinceNow()}); err != nil {
			t.Error(err)
		}
		if want := []string{"0s kill 0", "1s start 0", "2s kill 0", "3s start 0"}; !slices.Equal(c.log, want) {
			t.Errorf("was done %v, want %v", c.log, want)
		}
	})
}

func TestAJumpIsMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(5, 1)
		plan := onePhase(
			nemesis.Step{Kind: nemesis.ClockJump, For: 4 * time.Second, Nodes: []int{0}, Clock: nemesis.ClockState{Jump: time.Second}},
			nemesis.Step{Kind: nemesis.ClockFast, At: time.Second, For: time.Second, Nodes: []int{0}, Clock: nemesis.ClockState{Rate: 0.1}},
		)
		if err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{Now: sinceNow()}); err != nil || c.jumped != time.Second {
			t.Errorf("%v; jumped by %v", err, c.jumped)
		}
	})
}

// A node that ends by itself is started again once its disk is well, also if it ends late.
func TestNodesThatEndByThemselvesAreStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(5, 1)
		plan := onePhase(
			nemesis.Step{Kind: nemesis.DiskFails, For: time.Second, Nodes: []int{3}, Disk: nemesis.DiskFailing},
			nemesis.Step{Kind: nemesis.KillSnapshot, For: 2 * time.Second, Nodes: []int{2}, Disk: nemesis.DiskDeadly},
		)
		err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{Now: sinceNow(), Healed: func(ctx context.Context, _ time.Duration) {
			c.mu.Lock()
			c.down[1] = true
			c.mu.Unlock()
		}})
		c.healthy(t)
		if err != nil || !slices.Contains(c.log, "1s start 3") || !slices.Contains(c.log, "2s start 2") || slices.Contains(c.log, "0s kill 2") {
			t.Errorf("%v; was done: %v", err, c.log)
		}
	})
}

func TestTheNextPhaseWaitsForTheRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(3, 0)
		plan := nemesis.Plan(nemesis.Options{Nodes: 3, Time: 30 * time.Second, Kinds: []nemesis.Kind{nemesis.KillNode}})
		busy := false
		now := sinceNow()
		err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{
			Now: now,
			Active: func(active []history.Fault) {
				if busy && len(active) > 0 {
					t.Errorf("%v while the recovery is measured", active)
				}
			},
			Healed: func(ctx context.Context, healed time.Duration) {
				busy = true
				c.mu.Lock()
				c.down[1] = true
				c.mu.Unlock()
				time.Sleep(20 * time.Second)
				c.healthy(t) // it was started again meanwhile
				busy = false
			},
		})
		if err != nil || now() < 60*time.Second-20*time.Second || now() > 61*time.Second {
			t.Errorf("%v, after %v", err, now())
		}
	})
}

func TestCancellationAndErrorsHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTarget(5, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		plan := onePhase(
			nemesis.Step{Kind: nemesis.Isolate, For: 9 * time.Second, Nodes: []int{0}},
			nemesis.Step{Kind: nemesis.PauseHolder, For: 9 * time.Second},
			nemesis.Step{Kind: nemesis.KillAll, For: 9 * time.Second},
		)
		measured := false
		err := nemesis.Run(ctx, plan, c, nemesis.Hooks{Now: sinceNow(), Healed: func(ctx context.Context, _ time.Duration) {
			measured = ctx.Err() == nil
		}})
		if err != nil || !measured {
			t.Errorf("%v; the recovery was measured: %v", err, measured)
		}
		c.healthy(t)
		if since := time.Since(c.began); since > 2*time.Second {
			t.Errorf("ended %v after its context", since-time.Second)
		}

		c = newTarget(5, 1)
		c.refuse = errRefused
		if err := nemesis.Run(t.Context(), plan, c, nemesis.Hooks{Now: sinceNow()}); !errors.Is(err, errRefused) {
			t.Errorf("%v", err)
		}
		c.healthy(t)
		if err := nemesis.Run(t.Context(), plan, newTarget(3, 1), nemesis.Hooks{Now: sinceNow()}); err == nil {
			t.Error("a schedule for five nodes was done to three")
		}
	})
}
