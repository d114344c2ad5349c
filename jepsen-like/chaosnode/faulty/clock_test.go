package faulty_test

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/faulty"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestClock(t *testing.T) {
	inner := leasetest.NewManualClock(time.Unix(0, 0))
	inner.Advance(time.Hour)
	clock := faulty.NewClock(inner)
	origin := clock.Monotonic()
	for _, step := range []struct {
		what string
		set  nemesis.ClockState
		want time.Duration // after two more seconds
	}{
		{"right", nemesis.ClockState{}, 2 * time.Second},
		{"fast", nemesis.ClockState{Rate: 0.5}, 5 * time.Second},
		{"slow", nemesis.ClockState{Rate: -0.5}, 6 * time.Second},
		{"standing", nemesis.ClockState{Rate: -1}, 6 * time.Second},
		{"jumping", nemesis.ClockState{Jump: time.Minute}, time.Minute + 8*time.Second},
		{"both", nemesis.ClockState{Rate: 1, Jump: time.Minute}, 2*time.Minute + 12*time.Second},
	} {
		if err := clock.Set(step.set); err != nil {
			t.Fatal(err)
		}
		inner.Advance(2 * time.Second)
		if got := clock.Monotonic() - origin; got != step.want {
			t.Errorf("%s: %v; want %v", step.what, got, step.want)
		}
	}
	for _, back := range []nemesis.ClockState{{Rate: -1.1}, {Jump: -time.Second}} {
		if clock.Set(back) == nil {
			t.Errorf("%+v is not refused", back)
		}
	}
}
