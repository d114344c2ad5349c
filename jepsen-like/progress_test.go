package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

func TestTheProgressLine(t *testing.T) {
	tally := newTally(history.NewRecorder(nil))
	p := progress{
		length: time.Minute, now: func() time.Duration { return 20 * time.Second }, tally: tally,
		ledger: workload.NewLedger(0, tally),
	}
	if line := p.line(); line != "40s left · 0 operations (none answered) · 0 grants · no faults now" {
		t.Error(line)
	}
	for _, op := range []history.Op{
		{Client: "c1", Kind: history.Acquire, Outcome: history.OK, Changed: true, Tries: 1},
		{Client: "c1", Kind: history.Acquire, Outcome: history.OK, Tries: 1},
		{Client: "c2", Kind: history.Renew, Outcome: history.Lost, Tries: 1},
		{Client: "c2", Kind: history.Get, Outcome: history.Unavailable, Tries: 1},
		{Client: "probe-n1", Kind: history.Get, Outcome: history.Unavailable, Tries: 1},
	} {
		tally.AddOp(op)
	}
	p.ledger.Of("h1").Held(workload.Grant{Key: "k", Epoch: 1}, workload.Span{From: 1, Until: 2})
	tally.setActive([]history.Fault{{Kind: "split", Targets: []string{"n1", "n2"}}, {Kind: "latency", Targets: []string{"n3"}}})
	if line := p.line(); line != "40s left · 4 operations (75.0 % answered) · 2 grants · split n1,n2 · latency n3" {
		t.Error(line)
	}
	if short := cut(p.line(), 20); short != "40s left · 4 operat…" {
		t.Error(short)
	}
}

// What is all but everything is not called everything, as in the report.
func TestTheShareIsRoundedDown(t *testing.T) {
	if got := (counts{ops: 10_000, done: 9_999}).share(); got != "99.9 %" {
		t.Error(got)
	}
}

func TestWhatIsNoTerminal(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, live := terminalOf(file); live {
		t.Error("a file is taken for a terminal")
	}
	if _, live := terminalOf(&strings.Builder{}); live {
		t.Error("a builder is taken for a terminal")
	}
}
