package main

import (
	"os"
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// plan makes or reads the schedule, and chooses the node program that it needs.
func (c *campaign) plan(g given) error {
	kinds, err := nemesis.Parse(c.faults)
	if err != nil {
		return usagef("--faults: %v", err)
	}
	if c.settings.schedule != "" {
		return c.read(g)
	}
	c.chooseNode(kinds)
	kinds, err = c.possible(kinds)
	if err != nil {
		return err
	}
	c.schedule = nemesis.Plan(nemesis.Options{
		Seed: c.seed, Nodes: c.nodes, Holders: c.holders, Time: c.time, Kinds: kinds, Intensity: c.intensity,
	})
	return nil
}

// chooseNode chooses the node program: the harness's own where something asks for what
// leasenode cannot do, and that by name.
func (c *campaign) chooseNode(kinds []nemesis.Kind) {
	switch {
	case c.node != "":
	case len(c.insisted(kinds)) > 0 || c.broken != "":
		c.node = chaosNode
	default:
		c.node = realNode
	}
}

// impossible returns the kinds that cannot be done to leasenode from outside.
func (c *campaign) impossible(kinds []nemesis.Kind) []nemesis.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(kind nemesis.Kind) bool {
		switch nemesis.GroupOf(kind) {
		case nemesis.Clock:
			return false
		case nemesis.Disk:
			return c.mount && kind == nemesis.DiskIsFull
		default:
			return kind != nemesis.KillSnapshot
		}
	})
}

// insisted returns the kinds that cannot be done to leasenode and may not be left out:
// those that are named, be it by a group that has hardly others, or by a schedule.
func (c *campaign) insisted(kinds []nemesis.Kind) []nemesis.Kind {
	if slices.Contains(c.faults, "all") {
		return nil
	}
	return slices.DeleteFunc(c.impossible(kinds), func(kind nemesis.Kind) bool {
		group := string(nemesis.GroupOf(kind))
		return group == string(nemesis.Process) && slices.Contains(c.faults, group) && !slices.Contains(c.faults, string(kind))
	})
}

// possible returns the kinds that can be done to the nodes: of all that there are those
// that the program can take, and else an error if one is asked for that it cannot.
func (c *campaign) possible(kinds []nemesis.Kind) ([]nemesis.Kind, error) {
	cannot := c.impossible(kinds)
	if c.node == chaosNode || len(cannot) == 0 {
		return kinds, nil
	}
	if insisted := c.insisted(kinds); len(insisted) > 0 {
		return nil, usagef("%v cannot be done to leasenode from outside: leave --node out, or name chaosnode", insisted)
	}
	c.left = cannot
	return slices.DeleteFunc(kinds, func(kind nemesis.Kind) bool { return slices.Contains(cannot, kind) }), nil
}

// read reads the schedule, which also says what nodes and holders it is for.
func (c *campaign) read(g given) error {
	for _, flag := range []string{"faults", "time", "intensity"} {
		if g.flag(flag) {
			return usagef("--schedule and --%s are both given: the schedule has it", flag)
		}
	}
	data, err := os.ReadFile(c.settings.schedule)
	if err != nil {
		return usagef("--schedule: %v", err)
	}
	if c.schedule, err = nemesis.Decode(data); err != nil {
		return usagef("--schedule %s: %v", c.settings.schedule, err)
	}
	if g.flag("nodes") && c.nodes != c.schedule.Nodes {
		return usagef("--nodes is %d and the schedule is for %d", c.nodes, c.schedule.Nodes)
	}
	if c.holders < c.schedule.Holders {
		return usagef("there are %d holders and the schedule is for %d", c.holders, c.schedule.Holders)
	}
	c.nodes, c.time = c.schedule.Nodes, c.schedule.Time
	if !g.flag("seed") {
		c.seed = c.schedule.Seed
	}
	c.faults = nil
	c.chooseNode(c.schedule.Kinds())
	_, err = c.possible(c.schedule.Kinds())
	return err
}
