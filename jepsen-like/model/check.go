package model

import (
	"cmp"
	"fmt"
	"html"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// Options bound a check.
type Options struct {
	// Timeout bounds the search for one key; 0 is no bound.
	Timeout time.Duration
	// RememberedGrants is how many grants of a key the store remembers, with their
	// request ids, the current one included; 0 is all.
	RememberedGrants int
}

// Result is what was found out about one key.
type Result struct {
	Key string
	// Answer is Ok, Illegal, or Unknown if the time was not enough.
	Answer porcupine.CheckResult
	// Judged counts the answers that had to be right, Possible the effects that nobody
	// was told of and that had to be tried.
	Judged, Possible int
	// Stuck is, of an Illegal key, the operations for which there is no place after the
	// longest order that is right, those that ended first first.
	Stuck []history.Op
	// After describes the key at the end of that order.
	After string
	// Took is how long the search took.
	Took time.Duration

	model porcupine.Model
	info  porcupine.LinearizationInfo
}

// Split returns the operations of each key, in the order of their calls.
func Split(ops []history.Op) map[string][]history.Op {
	keys := map[string][]history.Op{}
	for _, op := range ops {
		keys[op.Key] = append(keys[op.Key], op)
	}
	for _, ops := range keys {
		slices.SortStableFunc(ops, func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
	}
	return keys
}

// Check judges the operations of one key; those of other keys are an error of the
// caller's. It returns after about twice Timeout at the latest.
func Check(key string, ops []history.Op, o Options) Result {
	began := time.Now()
	inputs, extra := prepare(ops)
	r := &rules{evidence: gather(inputs), remembered: o.RememberedGrants, lookahead: true}
	result := Result{Key: key, Judged: len(inputs)}
	operations := schedule(inputs, r.evidence, extra)
	result.Possible = len(operations) - len(inputs) - 1
	result.Answer = porcupine.CheckOperationsTimeout(r.porcupine(), operations, o.Timeout)
	if result.Answer == porcupine.Illegal {
		result.explain(r.withoutLookahead(), operations, o.Timeout)
	}
	result.Took = time.Since(began)
	return result
}

// Visualize writes porcupine's picture of the key to an HTML file at path.
func (r Result) Visualize(path string) error {
	if err := porcupine.VisualizePath(r.model, r.info, path); err != nil {
		return fmt.Errorf("model: picture of key %q: %w", r.Key, err)
	}
	return nil
}

// prepare returns the answers to judge, ranked, and what else may have been done.
func prepare(ops []history.Op) (inputs []*input, extra []history.Op) {
	var instants []int64
	for _, op := range ops {
		if judged(op) {
			in := inputOf(op)
			inputs = append(inputs, in)
			if instantKnown(op) {
				instants = append(instants, in.now)
			}
		}
		if mayHaveActed(op) != 0 {
			extra = append(extra, op)
		}
	}
	slices.Sort(instants)
	for _, in := range inputs {
		in.rank, _ = slices.BinarySearch(instants, in.now)
	}
	return inputs, extra
}

// schedule makes porcupine's operations of all that has to be placed.
func schedule(inputs []*input, ev *evidence, extra []history.Op) []porcupine.Operation {
	clients := map[string]int{}
	client := func(name string) int {
		if _, known := clients[name]; !known {
			clients[name] = len(clients)
		}
		return clients[name]
	}
	var operations []porcupine.Operation
	last := int64(0)
	for _, in := range inputs {
		last = max(last, int64(in.op.Return))
		operations = append(operations, porcupine.Operation{
			ClientId: client(in.op.Client), Input: in, Output: in.op.Outcome, Call: int64(in.op.Call), Return: int64(in.op.Return),
		})
	}
	for _, op := range extra {
		for range ev.worthwhile(op, mayHaveActed(op)) {
			in := inputOf(op)
			in.part = possible
			operations = append(operations, porcupine.Operation{
				ClientId: client(op.Client + " (not answered)"), Input: in, Output: history.Unknown, Call: int64(op.Call), Return: math.MaxInt64,
			})
		}
	}
	return append(operations, porcupine.Operation{
		ClientId: client("the end"), Input: &input{part: ending}, Output: history.OK, Call: last + 1, Return: math.MaxInt64,
	})
}

func (r *rules) porcupine() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return initial() },
		Step: func(s, in, _ any) (bool, any) {
			next, ok := r.step(s.(state), in.(*input))
			return ok, next
		},
		Equal:             func(a, b any) bool { return a.(state).equal(b.(state)) },
		Hash:              func(s any) uint64 { return s.(state).hash() },
		DescribeOperation: func(in, _ any) string { return in.(*input).describe() },
		// The picture puts this into the page as HTML, unlike the operation.
		DescribeState: func(s any) string { return html.EscapeString(s.(state).String()) },
	}
}
