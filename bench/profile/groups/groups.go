// Package groups says what a process spends its time for: it sorts the samples of a
// profile into a few groups, by the innermost frame that belongs to one. So a system call
// counts for the log or for the network, whoever makes it, and memory for the garbage
// collector only where nothing of a group is on the stack. It is pure. Start reading at
// [Of].
package groups

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// rule says of functions with that prefix what they are for.
type rule struct{ prefix, group string }

// rules are looked at in order for each frame. What comes first is more exact.
func rules() []rule {
	const module = "github.com/leasenode/leasenode/"
	return []rule{
		{module + "raftnet/disk", "the log and the vote on disk"},
		{"go.etcd.io/bbolt", "bbolt"},
		{module + "fsm", "the state machine"},
		{module + "raftnet", "proposing, reading, the peer port"},
		{module + "api/bundle", "bundles"},
		{module + "api.(*bundle", "bundles"},
		{module + "api.(*replies", "bundles"},
		{module + "api", "answering calls"},
		{module + "holder", "the holder's client"},
		{module + "bench", "the load itself"},
		{"google.golang.org/protobuf", "protobuf"},
		{"google.golang.org/grpc", "gRPC"},
		{"golang.org/x/net/http2", "gRPC"},
		{"github.com/hashicorp/go-msgpack", "raft's encoding"},
		{"github.com/hashicorp/raft", "raft"},
		{"github.com/prometheus", "metrics"},
		{"github.com/armon/go-metrics", "metrics"},
		{"github.com/hashicorp/go-metrics", "metrics"},
		{"runtime.gcBgMarkWorker", "garbage collection"},
		{"runtime.bgsweep", "garbage collection"},
		{"runtime.bgscavenge", "garbage collection"},
		{"runtime.schedule", "the scheduler"},
		{"runtime.mcall", "the scheduler"},
		{"runtime.findRunnable", "the scheduler"},
		{"runtime.mstart", "the scheduler"},
		{"runtime.goexit0", "the scheduler"},
	}
}

const other = "other"

// groupOf returns the group of a stack, innermost frame first.
func groupOf(stack []string, all []rule) string {
	for _, frame := range stack {
		for _, r := range all {
			if strings.HasPrefix(frame, r.prefix) {
				return r.group
			}
		}
	}
	return other
}

// Part is what goes to a group, or to a function.
type Part struct {
	Name  string
	Value int64
}

// Of returns the groups of a profile, the largest first, by the sample value of that name
// (as cpu, alloc_space, delay).
func Of(p *profile.Profile, value string) []Part {
	all, sums := rules(), map[string]int64{}
	each(p, value, func(stack []string, v int64) { sums[groupOf(stack, all)] += v })
	return sorted(sums)
}

// Sites returns the innermost functions outside the runtime and package sync, the largest
// first: where memory is allocated, or where goroutines wait.
func Sites(p *profile.Profile, value string) []Part {
	sums := map[string]int64{}
	each(p, value, func(stack []string, v int64) {
		for _, frame := range stack {
			if !strings.HasPrefix(frame, "runtime.") && !strings.HasPrefix(frame, "sync.") && !strings.HasPrefix(frame, "internal/sync.") {
				sums[frame] += v
				return
			}
		}
	})
	return sorted(sums)
}

// each visits the samples.
func each(p *profile.Profile, value string, visit func(stack []string, v int64)) {
	index := slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == value })
	if index < 0 {
		return
	}
	for _, sample := range p.Sample {
		var stack []string
		for _, location := range sample.Location {
			for _, line := range location.Line {
				if line.Function != nil {
					stack = append(stack, line.Function.Name)
				}
			}
		}
		visit(stack, sample.Value[index])
	}
}

func sorted(sums map[string]int64) []Part {
	var parts []Part
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if sums[name] > 0 {
			parts = append(parts, Part{name, sums[name]})
		}
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return cmp.Compare(b.Value, a.Value) })
	return parts
}
