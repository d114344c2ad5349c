package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
)

// comparison is of the states of several nodes, at one log entry.
type comparison struct {
	// of is how many nodes there are, compared or not.
	of int
	// nodes are compared at index, by name; none if there are not two with a common
	// entry.
	nodes  map[string]*checkedNode
	index  uint64
	absent []notComparedJSON
	differ []string
}

// compareLogs finds the latest entry up to which all nodes can be compared. The last
// entries may never have been committed, and nodes can rightly have other ones there:
// but where two logs have an entry of the same index and term, both have the same ones
// up to it.
func compareLogs(ctx context.Context, nodes []*checkedNode) (*comparison, error) {
	c := &comparison{of: len(nodes), nodes: map[string]*checkedNode{}}
	if len(nodes) < 2 || foundStrangers(nodes) {
		return c, nil
	}
	names := namesOf(nodes)
	for i, n := range nodes {
		switch {
		case n.empty:
			c.leaveOut(names[i], "there is nothing in it")
		case n.log == nil:
			c.leaveOut(names[i], "its log is missing, damaged or does not join its snapshots")
		case n.highest() == 0:
			c.leaveOut(names[i], "its log is empty")
		default:
			c.nodes[names[i]] = n
		}
	}
	for len(c.nodes) > 1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		low, high := c.overlap()
		if c.index = c.latestCommon(low, high); c.index > 0 {
			return c, nil
		}
		c.judgeApart(low)
		last := c.behind()
		c.leaveOut(last, "it has no log entry in common with the others")
		delete(c.nodes, last)
	}
	for name := range c.nodes {
		c.leaveOut(name, "there is no other node to compare it with")
	}
	c.nodes = nil
	return c, nil
}

func (c *comparison) leaveOut(name, why string) {
	c.absent = append(c.absent, notComparedJSON{ID: name, Why: why})
}

// namesOf returns a name for each node: its id, or its directory where two have one id.
func namesOf(nodes []*checkedNode) []string {
	count := map[string]int{}
	for _, n := range nodes {
		count[n.ID]++
	}
	var names []string
	for _, n := range nodes {
		if count[n.ID] > 1 {
			names = append(names, n.Dir)
		} else {
			names = append(names, n.ID)
		}
	}
	return names
}

// lowest returns the first index that the state of n, whose log is right, can be made
// at, and highest the last.
func (n *checkedNode) lowest() uint64 {
	if n.log.first == 1 {
		return 1
	}
	low := n.log.first
	for _, s := range n.report.Snapshots { // newest first
		if s.Damage == nil && n.goesOn(s.Index) {
			low = s.Index
		}
	}
	return low
}

func (n *checkedNode) highest() uint64 {
	for _, s := range n.report.Snapshots {
		if s.Damage == nil {
			return max(n.log.last, s.Index)
		}
	}
	return n.log.last
}

// termAt returns the term of the entry at index, false if the state of n up to there
// cannot be made.
func (n *checkedNode) termAt(index uint64) (uint64, bool) {
	for _, s := range n.report.Snapshots {
		if s.Damage == nil && s.Index == index {
			return s.Term, true
		}
	}
	return n.log.termAt(index)
}

// overlap returns the bounds of what all nodes have.
func (c *comparison) overlap() (low, high uint64) {
	low, high = 1, ^uint64(0)
	for _, n := range c.nodes {
		low, high = max(low, n.lowest()), min(high, n.highest())
	}
	return low, high
}

// termsAt returns the terms that the nodes' entries at index have, nil if one of them
// has none.
func (c *comparison) termsAt(index uint64) map[uint64]bool {
	terms := map[uint64]bool{}
	for _, n := range c.nodes {
		term, ok := n.termAt(index)
		if !ok {
			return nil
		}
		terms[term] = true
	}
	return terms
}

// latestCommon returns the latest index from low to high at which all nodes have an
// entry of the same term, 0 if there is none.
func (c *comparison) latestCommon(low, high uint64) uint64 {
	for index := high; index >= low; index-- {
		if len(c.termsAt(index)) == 1 {
			return index
		}
	}
	return 0
}

// judgeApart notes a problem if the nodes' entries at low, where what they have begins
// to overlap, are not of one term: such an entry is in a snapshot, or the first of all,
// and so was committed.
func (c *comparison) judgeApart(low uint64) {
	if len(c.termsAt(low)) < 2 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[name]
		term, _ := n.termAt(low)
		n.foundOnce(problemJSON{
			Kind: problemDiffers, Part: partLog, File: n.logPath(), Place: fmt.Sprintf("entry %d", low), Index: low,
			Message: fmt.Sprintf("entry %d of %s is of term %d, and another node has one of another term there, though it was committed: %s", low, n.Dir, term, examine),
		})
	}
}

// examine is what to do with nodes that contradict each other.
const examine = "keep the directories for examination, and start none of them before the cause is known"

// behind returns the name of the node that ends first.
func (c *comparison) behind() string {
	return slices.MinFunc(slices.Sorted(maps.Keys(c.nodes)), func(a, b string) int {
		return cmp.Compare(c.nodes[a].highest(), c.nodes[b].highest())
	})
}

// indexFor returns where the digest of n is to be taken, 0 for nowhere.
func (c *comparison) indexFor(n *checkedNode) uint64 {
	for _, compared := range c.nodes {
		if compared == n {
			return c.index
		}
	}
	return 0
}

// compareStates notes the nodes whose digest is not that of most.
func (c *comparison) compareStates() {
	with := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		if n := c.nodes[name]; n.compared == "" {
			c.leaveOut(name, "its state could not be made")
			delete(c.nodes, name)
		} else {
			with[n.compared] = append(with[n.compared], name)
		}
	}
	if len(with) < 2 {
		return
	}
	most := mostCommon(with)
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		n := c.nodes[name]
		if n.compared == most {
			continue
		}
		c.differ = append(c.differ, name)
		n.found(problemJSON{
			Kind: problemDiffers, Part: partState, Index: c.index,
			Message: fmt.Sprintf("the state of %s at log entry %d is not the one that most nodes have there: %s", n.Dir, c.index, examine),
		})
	}
}

// mostCommon returns the digest that most nodes have, "" if no one is before all others.
func mostCommon(with map[string][]string) string {
	most, tied := "", false
	for _, digest := range slices.Sorted(maps.Keys(with)) {
		switch n := len(with[digest]) - len(with[most]); {
		case n > 0:
			most, tied = digest, false
		case n == 0:
			tied = true
		}
	}
	if tied {
		return ""
	}
	return most
}

// result returns what is told, nil if there was nothing to compare.
func (c *comparison) result() *comparisonJSON {
	if c.of < 2 {
		return nil
	}
	r := &comparisonJSON{Index: c.index, Digests: map[string]string{}, Differ: []string{}, NotCompared: []notComparedJSON{}}
	for name, n := range c.nodes {
		r.Digests[name], r.DigestIndex = n.compared, n.comparedAt
	}
	r.Differ = append(r.Differ, c.differ...)
	r.NotCompared = append(r.NotCompared, c.absent...)
	return r
}
