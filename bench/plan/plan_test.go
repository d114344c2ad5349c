package plan_test

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/bench/plan"
)

// measurements is about what a run with every system installed has in a round.
const measurements = 42

func TestTheRunsAreLongEnough(t *testing.T) {
	for _, total := range []time.Duration{plan.Full, plan.Quick} {
		p, err := plan.New(total, measurements)
		if err != nil {
			t.Fatal(err)
		}
		if p.Rounds < 5 {
			t.Errorf("%v: a median of %d", total, p.Rounds)
		}
		if p.WarmUp < time.Second || p.Settle < 500*time.Millisecond {
			t.Errorf("%v: %v to warm up, %v to settle", total, p.WarmUp, p.Settle)
		}
		load := time.Duration(measurements*p.Rounds) * (p.Warm + p.Window)
		if load > total/2 || load < total/3 {
			t.Errorf("%v: %v of it are for load", total, load)
		}
		if p.KillsUntil <= load || p.KillsUntil >= total {
			t.Errorf("%v: leaders are killed until %v, load takes %v", total, p.KillsUntil, load)
		}
	}
}

func TestOnlyAFullRunFillsInManyLeases(t *testing.T) {
	full, err := plan.New(plan.Full, measurements)
	if err != nil {
		t.Fatal(err)
	}
	quick, err := plan.New(plan.Quick, measurements)
	if err != nil {
		t.Fatal(err)
	}
	if full.Leases != 100_000 || quick.Leases >= full.Leases {
		t.Errorf("full %d, quick %d leases", full.Leases, quick.Leases)
	}
}

func TestATooShortRunIsRefused(t *testing.T) {
	if p, err := plan.New(10*time.Second, measurements); err == nil {
		t.Errorf("10 s were planned as %+v", p)
	}
	if _, err := plan.New(plan.Full, 0); err == nil {
		t.Error("a run of nothing was planned")
	}
}
