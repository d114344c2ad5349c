package report

import (
	"fmt"
	"strings"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// Counts reports whether an operation is one of the workload. Those of the harness's
// own probes, which ask after each fault again and again until they are answered, are
// judged like all others; but counted, they would say nothing of the cluster.
func Counts(op history.Op) bool { return !strings.HasPrefix(op.Client, "probe-") }

// Answered reports whether the store has decided about an operation and said so.
func Answered(outcome history.Outcome) bool {
	switch outcome {
	case history.OK, history.Held, history.Lost, history.Invalid, history.Exhausted:
		return true
	default:
		return false
	}
}

// Percent returns how much n is of all, for people; a dash if all is 0. It is rounded
// down, so that 100 means all.
func Percent(n, all int) string {
	if all == 0 {
		return "–"
	}
	return fmt.Sprintf("%d.%d %%", 100*n/all, 1000*n/all%10)
}

// counted returns the operations that count.
func counted(ops []history.Op) []history.Op {
	var some []history.Op
	for _, op := range ops {
		if Counts(op) {
			some = append(some, op)
		}
	}
	return some
}
