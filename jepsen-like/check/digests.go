package check

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// digests compares what nodes told of the same index, whenever they told it.
func digests(s *subject, f *finding) {
	first := map[uint64]history.Digest{}
	nodes := map[uint64]map[string]bool{}
	for _, d := range s.run.Digests {
		f.Looked++
		before, known := first[d.Index]
		if !known {
			first[d.Index] = d
			nodes[d.Index] = map[string]bool{}
		}
		nodes[d.Index][d.Node] = true
		if known && before.Sum != d.Sum {
			f.violation(Violation{Text: fmt.Sprintf("at index %d node %q has the state %s and node %q has %s", d.Index, before.Node, before.Sum, d.Node, d.Sum)})
		}
	}
	compared := 0
	for _, index := range slices.Sorted(maps.Keys(nodes)) {
		if len(nodes[index]) > 1 {
			compared++
		}
	}
	if compared == 0 {
		f.unknown("no index was told by two nodes")
		return
	}
	f.note("compared at %d indexes", compared)
}
