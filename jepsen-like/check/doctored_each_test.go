package check_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leasenode/leasenode/jepsen-like/check"
)

// Where a check looks for one thing in several ways, each of them tells by itself.
func TestEachWayToLookTells(t *testing.T) {
	cases := doctored()
	for name, texts := range map[string]map[string]string{
		"epochs": {
			"two owners of one":                "is shown as of two owners",
			"another's grant":                  "answered with another owner's grant",
			"granted twice":                    "was granted twice",
			"one for two attempts":             "went to two attempts",
			"granted twice to one attempt":     "was granted twice",
			"one for two attempts without ids": "went to two attempts",
			"back":                             "the epoch went back",
			"one for nobody":                   "but to nobody",
			"owner without acquiring":          "who has no acquire that can have got it",
			"belief without a grant":           "which was not granted",
			"belief of two":                    "both believe in epoch",
			"another in the record":            "in the last record",
		},
		"floor": {
			"back": "went back", "above the epoch": "is above the epoch", "asked by nobody": "nobody with that epoch", "back in the last record": "in the last record",
		},
		"stale-reads": {
			"epoch of the future": "that was granted later", "epoch never granted": "was not granted", "other owner": "with an owner who is not",
			"floor that nobody set": "a floor that nobody set", "end that nobody made": "that nobody made", "end that no watcher was told": "that no watcher was told",
			"over before its end": "0 ms left where", "too much remains": "ms left where",
		},
		"resource": {
			"one number twice": "has the number of another", "no number": "has the number of another", "a newer one is refused": "was refused",
			"a holder's in another order": "before the one before it", "older after newer": "the resource took token", "never granted": "which was not granted",
		},
		"clock": {
			"a belief before its grant": "believed from", "a write before its grant": "wrote at", "an event too early": "was told",
			"back after an event": "went back", "lease ends early": "early",
		},
		"acknowledged": {
			"a grant is lost": "acknowledged, but lost", "a holder's grant is lost": "held epoch 2", "a key is there twice": "two last records",
			"an end that no watcher was told": "was not told that", "a renewal is lost": "acknowledged, but lost",
		},
		"believed": {
			"after a release": "that it had ended", "after its end on the clock": "longer than any answer", "after what can have been told": "longer than any answer",
		},
	} {
		for what, text := range texts {
			run := goodRun()
			cases[name][what](&run)
			found := check.Judge(run, check.Options{}).Check(name)
			if !slices.ContainsFunc(found.Violations, func(v check.Violation) bool { return strings.Contains(v.Text, text) }) {
				t.Errorf("%s, %s: none tells %q: %+v", name, what, text, found.Violations)
			}
		}
	}
}
