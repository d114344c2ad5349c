package nemesis_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// What fails is a kill with a pause of at least a second: two steps are left, and the
// pause is as short as it can be.
func TestShrinkKeepsWhatIsNeeded(t *testing.T) {
	plan := nemesis.Plan(nemesis.Options{Seed: 3, Nodes: 5, Holders: 2, Time: 2 * time.Minute, Kinds: all(t), Intensity: 3})
	tries := 0
	fails := func(s nemesis.Schedule) bool {
		tries++
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		kill, pause := false, false
		for _, step := range s.Steps {
			kill = kill || step.Kind == nemesis.KillLeader
			pause = pause || step.Kind == nemesis.PauseLeader && step.For >= time.Second
		}
		return kill && pause
	}
	if !fails(plan) {
		t.Fatal("the seed does not have what the test needs")
	}
	small := nemesis.Shrink(t.Context(), plan, fails)
	if len(small.Steps) != 2 || !fails(small) {
		t.Errorf("left are %+v", small.Steps)
	}
	for _, step := range small.Steps {
		if step.Kind == nemesis.KillLeader && step.For >= 600*time.Millisecond || step.Kind == nemesis.PauseLeader && step.For >= 2*time.Second {
			t.Errorf("%s still lasts %v", step.Kind, step.For)
		}
	}
	if tries > 300 {
		t.Errorf("it took %d tries", tries)
	}
}

func TestShrinkFindsThePhase(t *testing.T) {
	plan := nemesis.Plan(nemesis.Options{Seed: 3, Nodes: 5, Time: 2 * time.Minute, Kinds: all(t)})
	last := plan.Steps[len(plan.Steps)-1].Kind
	small := nemesis.Shrink(t.Context(), plan, func(s nemesis.Schedule) bool {
		return len(s.Steps) > 0 && s.Steps[len(s.Steps)-1].Kind == last
	})
	if len(small.Steps) != 1 || len(small.Phases) != 1 || small.Time > 20*time.Second {
		t.Errorf("left are %d steps in %v", len(small.Steps), small.Time)
	}
	always := func(nemesis.Schedule) bool { return true }
	if small := nemesis.Shrink(t.Context(), plan, always); len(small.Steps) != 0 {
		t.Errorf("what always fails needs %d steps", len(small.Steps))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if small := nemesis.Shrink(ended, plan, always); len(small.Steps) != len(plan.Steps) {
		t.Error("it went on after its context had ended")
	}
}
