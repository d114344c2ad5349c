package check

import (
	"fmt"
	"runtime"
	"strings"
	"sync"

	"github.com/anishathalye/porcupine"

	"github.com/leasenode/leasenode/jepsen-like/model"
)

// linearizable has the model judge each key, as many at once as there are processors.
func linearizable(s *subject, f *finding) []model.Result {
	results := make([]model.Result, len(s.keys))
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	var searches sync.WaitGroup
	for i, key := range s.keys {
		free <- struct{}{}
		searches.Go(func() {
			results[i] = model.Check(key, s.ops[key], model.Options{Timeout: s.options.PerKey, RememberedGrants: s.options.KeptGrants})
			<-free
		})
	}
	searches.Wait()
	for _, r := range results {
		f.Looked += r.Judged
		switch r.Answer {
		case porcupine.Illegal:
			f.violation(noOrder(r))
		case porcupine.Unknown:
			f.unknown("%q: no answer after %v for %d operations", r.Key, r.Took.Round(s.options.PerKey/100), r.Judged+r.Possible)
		}
	}
	return results
}

// noOrder tells where the longest order ends, and of the operations without a place the
// ones that ended first.
func noOrder(r model.Result) Violation {
	const shown = 3
	if len(r.Stuck) == 0 {
		return Violation{Key: r.Key, Text: "there is no order in which every answer is right"}
	}
	stuck := r.Stuck[:min(shown, len(r.Stuck))]
	lines := make([]string, len(stuck))
	for i, op := range stuck {
		lines[i] = model.Describe(op)
	}
	// What comes first without a place is where it went wrong; the others often follow.
	v := by(fmt.Sprintf("no order is right. The longest has %d of %d answers and leaves the key at: %s. Then there is no place for: %s",
		r.Judged-len(r.Stuck), r.Judged, r.After, strings.Join(lines, "; ")), stuck...)
	v.From, v.Until = span(stuck[0])
	return v
}
