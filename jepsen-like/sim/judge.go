package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// fastest is how much faster than right a node's clock runs at most when a schedule
// makes it fast.
const fastest = 0.1

// Judge judges a run of [Run], with all checks that a run of chaos has to pass, and two
// more, of what only a simulation sees: that no node has ended because it found its own
// state or log to be wrong, and that all logs agree.
func Judge(run history.Run) check.Verdict {
	o := check.Options{Rate: nodeDrift, Recovery: recovery, Skip: map[string]string{}}
	for _, fault := range run.Faults {
		switch nemesis.Kind(fault.Kind) {
		case nemesis.ClockFast:
			o.Rate = nodeDrift + fastest
		case nemesis.ClockJump:
			o.Skip["clock"] = "clocks were made to jump"
		}
	}
	v := check.Judge(run, o)
	v.Checks = append(v.Checks, exits(run), logsMatch(run))
	return v
}

// logsMatch looks for what the logbook has noticed.
func logsMatch(run history.Run) check.Check {
	c := check.Check{Name: "logs", Promise: "No two nodes write different entries under one index and term.", Of: "complaints", Status: check.Pass}
	for _, e := range run.Events {
		if e.What == differs {
			c.Status = check.Fail
			c.Found++
			c.Violations = append(c.Violations, check.Violation{Check: c.Name, From: e.At, Until: e.At, Text: fmt.Sprintf("in the log of %q %s", e.Node, e.Detail)})
		}
	}
	return c
}

// exits looks for nodes that ended for a reason that no fault accounts for.
func exits(run history.Run) check.Check {
	c := check.Check{Name: "exits", Promise: "No node ends because its state or its log is wrong.", Of: "ends", Status: check.Pass}
	for _, e := range run.Events {
		if e.What != exited {
			continue
		}
		c.Looked++
		if slices.ContainsFunc(accounted, func(code int) bool { return strings.HasPrefix(e.Detail, exitText(code)) }) {
			continue
		}
		c.Status = check.Fail
		c.Found++
		c.Violations = append(c.Violations, check.Violation{Check: c.Name, From: e.At, Until: e.At, Text: fmt.Sprintf("node %q ended: %s", e.Node, e.Detail)})
	}
	return c
}

// What happens to nodes, besides being started and killed.
const (
	exited  = "exited"
	differs = "log differs"
)

// accounted are the exit codes of a node that was asked to end, or whose disk has failed
// or hung.
var accounted = []int{0, node.ExitStorage, node.ExitHung}

func exitText(code int) string { return fmt.Sprintf("exit code %d: ", code) }
