package nemesis_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

func all(t *testing.T) []nemesis.Kind {
	t.Helper()
	kinds, err := nemesis.Parse([]string{"all"})
	if err != nil {
		t.Fatal(err)
	}
	return kinds
}

func TestAPlanDependsOnItsOptionsOnly(t *testing.T) {
	options := nemesis.Options{Seed: 7, Nodes: 3, Holders: 2, Time: 2 * time.Minute, Kinds: all(t)}
	plan := nemesis.Plan(options)
	if !reflect.DeepEqual(plan, nemesis.Plan(options)) {
		t.Error("the same options give another plan")
	}
	options.Seed = 8
	if reflect.DeepEqual(plan.Steps, nemesis.Plan(options).Steps) {
		t.Error("another seed gives the same plan")
	}
}

func TestAPlanIsValidAndSurvivesItsText(t *testing.T) {
	for seed := range uint64(60) {
		for nodes := 1; nodes <= 5; nodes++ {
			plan := nemesis.Plan(nemesis.Options{Seed: seed, Nodes: nodes, Holders: int(seed % 3), Time: time.Duration(seed) * time.Second, Kinds: all(t)})
			text, err := plan.Encode()
			if err != nil {
				t.Fatal(err)
			}
			again, err := nemesis.Decode(text)
			if err != nil {
				t.Fatalf("seed %d, %d nodes: %v\n%s", seed, nodes, err, text)
			}
			if !reflect.DeepEqual(plan, again) {
				t.Fatalf("seed %d: read back as another plan:\n%+v\n%+v", seed, plan, again)
			}
			for _, phase := range plan.Phases {
				inPhase(t, plan, phase)
			}
		}
	}
}

// inPhase checks what a phase must not have.
func inPhase(t *testing.T, plan nemesis.Schedule, phase nemesis.Phase) {
	t.Helper()
	var jumps int
	for _, step := range plan.Steps {
		if step.At < phase.From || step.At >= phase.Until {
			continue
		}
		if step.End() > phase.Heal {
			t.Errorf("%s from %v lasts until %v, after the healing at %v", step.Kind, step.At, step.End(), phase.Heal)
		}
		if step.Kind == nemesis.ClockJump {
			jumps++
		}
		if r := step.Clock.Rate; r > 0.1 || r < -0.15 || step.Clock.Jump > 50*time.Millisecond || step.Clock.Jump < 0 {
			t.Errorf("%+v is more than the product promises to survive", step.Clock)
		}
	}
	if jumps > 1 {
		t.Errorf("%d jumps of clocks in one phase can add up to more than a margin", jumps)
	}
}

func TestJumpsOfClocksDoNotAddUp(t *testing.T) {
	jumps := nemesis.Plan(nemesis.Options{Seed: 1, Nodes: 3, Time: time.Minute, Kinds: []nemesis.Kind{nemesis.ClockJump}})
	if len(jumps.Steps) != len(jumps.Phases) {
		t.Errorf("%d jumps in %d phases", len(jumps.Steps), len(jumps.Phases))
	}
}

func TestDisksOfAPlan(t *testing.T) {
	for kind, want := range map[nemesis.Kind]nemesis.DiskState{
		nemesis.DiskIsFull: nemesis.DiskFull, nemesis.DiskFails: nemesis.DiskFailing, nemesis.DiskIsReadOnly: nemesis.DiskReadOnly,
		nemesis.DiskIsSlow: nemesis.DiskSlow, nemesis.DiskIsHanging: nemesis.DiskHanging, nemesis.KillSnapshot: nemesis.DiskDeadly,
	} {
		plan := nemesis.Plan(nemesis.Options{Seed: 1, Nodes: 3, Time: time.Minute, Kinds: []nemesis.Kind{kind}})
		for _, step := range plan.Steps {
			if step.Disk != want || len(step.Nodes) != 1 {
				t.Errorf("%s makes the disks of %v %q, want of one %q", kind, step.Nodes, step.Disk, want)
			}
		}
	}
}

func TestAMinuteOrTwoSeesEveryKind(t *testing.T) {
	plan := nemesis.Plan(nemesis.Options{Seed: 1, Nodes: 5, Holders: 2, Time: 3 * time.Minute, Kinds: all(t)})
	if got, want := plan.Kinds(), all(t); !slices.Equal(got, want) {
		t.Errorf("three minutes have %v, not all of %v", got, want)
	}
	if plan := nemesis.Plan(nemesis.Options{Seed: 1, Nodes: 3, Time: time.Minute}); len(plan.Steps) != 0 || len(plan.Phases) != 4 {
		t.Errorf("a plan without faults has %d steps and %d phases", len(plan.Steps), len(plan.Phases))
	}
}

func TestFaultsAreNamedByGroupsAndKinds(t *testing.T) {
	for _, c := range []struct{ words, want, fault string }{
		{words: "none", want: ""},
		{words: "ring,pause-holder", want: "ring,pause-holder"},
		{words: "disk,kill", want: "kill,disk-full,disk-failing,disk-read-only,disk-slow,disk-hanging"},
		{words: "clock,clock", want: "clock-fast,clock-slow,clock-jump"},
		{words: "clock-beyond", want: "clock-beyond"},
		{words: "fire", fault: `there is no fault "fire"`},
		{words: "none,kill", fault: "none goes with no other"},
	} {
		kinds, err := nemesis.Parse(strings.Split(c.words, ","))
		if c.fault != "" {
			if err == nil || !strings.Contains(err.Error(), c.fault) {
				t.Errorf("%s: %v", c.words, err)
			}
			continue
		}
		var got []string
		for _, kind := range kinds {
			got = append(got, string(kind))
		}
		if err != nil || strings.Join(got, ",") != c.want {
			t.Errorf("%s: %v, %v", c.words, got, err)
		}
	}
	if left := nemesis.Possible(all(t), nemesis.Clock, nemesis.Disk); len(left) == 0 || slices.ContainsFunc(left, func(k nemesis.Kind) bool {
		return strings.HasPrefix(string(k), "clock") || strings.HasPrefix(string(k), "disk")
	}) {
		t.Errorf("possible without clock and disk: %v", left)
	}
}

func TestAScheduleThatCannotBeIsRefused(t *testing.T) {
	head := `{"seed":1,"nodes":3,"holders":1,"time":9,"phases":[{"from":0,"heal":6000000000,"until":9000000000}],"steps":[`
	for step, fault := range map[string]string{
		`{"kind":"fire","at":1,"for":1}`:                                "no such fault",
		`{"kind":"kill","at":1,"for":1}`:                                "names no node",
		`{"kind":"kill","at":1,"for":1,"nodes":[3]}`:                    "no node 3 of 3",
		`{"kind":"kill","at":1,"for":-1,"nodes":[0]}`:                   "negative",
		`{"kind":"kill","at":7000000000,"for":1,"nodes":[0]}`:           "outside the time of faults",
		`{"kind":"pause-holder","at":1,"for":1,"holder":1}`:             "no holder 1 of 1",
		`{"kind":"flapping","at":1,"for":9,"nodes":[0],"every":1}`:      "too often",
		`{"kind":"kill","at":1,"for":1,"nodes":[0],"colour":"red"}`:     "colour",
		`{"kind":"kill","at":1,"for":1,"nodes":[0]}]} {"nodes":3,"a":[`: "",
	} {
		_, err := nemesis.Decode([]byte(head + step + "]}"))
		if fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%s: %v", step, err)
		}
	}
}
