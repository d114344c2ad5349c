package groups_test

import (
	"reflect"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/leasenode/leasenode/bench/profile/groups"
)

// of makes a profile of stacks, innermost frame first.
func of(stacks ...[]string) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu"}}}
	for i, stack := range stacks {
		s := &profile.Sample{Value: []int64{1, int64(10 * (i + 1))}}
		for _, name := range stack {
			s.Location = append(s.Location, &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}})
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func TestTheInnermostFrameOfAGroupCounts(t *testing.T) {
	const module = "github.com/leasenode/leasenode/"
	p := of(
		[]string{"syscall.Syscall", "go.etcd.io/bbolt.fdatasync", module + "raftnet/disk.(*journal).write", "github.com/hashicorp/raft.(*Raft).leaderLoop"},
		[]string{"runtime.mallocgc", module + "fsm.(*FSM).Apply", "github.com/hashicorp/raft.(*Raft).runFSM"},
		[]string{"runtime.gcDrain", "runtime.gcBgMarkWorker"},
		[]string{"main.main"},
		[]string{module + "api.(*bundleServer).serve"},
	)
	want := []groups.Part{{"bundles", 50}, {"other", 40}, {"garbage collection", 30}, {"the state machine", 20}, {"bbolt", 10}}
	if got := groups.Of(p, "cpu"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if got := groups.Of(p, "delay"); got != nil {
		t.Errorf("of a value that there is not: %v", got)
	}
}

func TestSitesAreOutsideTheRuntime(t *testing.T) {
	p := of([]string{"runtime.mallocgc", "sync.(*Pool).Get", "a.b", "c.d"}, []string{"runtime.park"}, []string{"a.b"})
	if got := groups.Sites(p, "cpu"); !reflect.DeepEqual(got, []groups.Part{{"a.b", 40}}) {
		t.Errorf("got %v", got)
	}
}
