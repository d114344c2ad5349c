package report_test

import (
	"flag"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/leasenode/leasenode/bench/report"
)

var update = flag.Bool("update", false, "write testdata anew")

// rows is one of everything: rates, times, a worst case, a peer that is not there.
func rows() []report.Row {
	return []report.Row{
		{
			Work: "acquire, 128 clients", Unit: report.PerSecond,
			Figures: map[report.System][]float64{
				report.Etcd: {2000, 2500, 2100}, report.ZooKeeper: {11600, 11000, 12000}, report.Leasenode: {12000, 12500, 11000},
			},
			Goals: []report.Goal{{report.Etcd, report.AtLeast, 5}, {report.ZooKeeper, report.AtLeast, 1.2}},
		},
		{
			Work: "acquire, 1 client, p50", Unit: report.Milliseconds,
			Figures: map[report.System][]float64{report.Etcd: {2.7, 2.8, 3}, report.Leasenode: {1.35, 1.4, 1.2}},
			Notes:   map[report.System]string{report.ZooKeeper: "not installed"},
			Goals:   []report.Goal{{report.Etcd, report.AtMost, 0.5}, {report.ZooKeeper, report.AtMost, 1}},
		},
		{
			Work: "no write after a kill, worst", Unit: report.Seconds, Pick: report.Largest,
			Figures: map[report.System][]float64{report.Etcd: {1.2, 1.6, 1.3}, report.Leasenode: {0.05, 0.2}},
			Goals:   []report.Goal{{report.Etcd, report.AtMost, 0.1}},
		},
		{Work: "a line | in a cell", Notes: map[report.System]string{report.Leasenode: "time was up"}},
	}
}

func TestRatioIsOfWhatStandsForTheRounds(t *testing.T) {
	ratio, ok := rows()[0].Ratio(report.Etcd)
	if !ok || ratio.Value != 12000.0/2100 || ratio.Low != 5 || ratio.High != 6 {
		t.Errorf("%+v, %v", ratio, ok)
	}
	ratio, ok = rows()[2].Ratio(report.Etcd)
	if !ok || ratio.Value != 0.2/1.6 || !math.IsNaN(ratio.Low) {
		t.Errorf("the worst: %+v, %v", ratio, ok)
	}
	if _, ok := rows()[1].Ratio(report.ZooKeeper); ok {
		t.Error("a ratio to a system that is not there")
	}
	zero := report.Row{Figures: map[report.System][]float64{report.Etcd: {0}, report.Leasenode: {1}}}
	if _, ok := zero.Ratio(report.Etcd); ok {
		t.Error("a ratio to 0")
	}
}

func TestJudge(t *testing.T) {
	want := [][]report.Verdict{
		{report.Reached, report.Missed},
		{report.Reached, report.Unmeasured},
		{report.Missed},
		nil,
	}
	for i, row := range rows() {
		for j, goal := range row.Goals {
			if got := row.Judge(goal); got != want[i][j] {
				t.Errorf("%s, goal %d: %s, not %s", row.Work, j, got, want[i][j])
			}
		}
	}
}

func TestAGoalOnItsBoundIsReached(t *testing.T) {
	row := report.Row{Figures: map[report.System][]float64{report.Etcd: {2}, report.Leasenode: {4}}}
	for _, sense := range []report.Sense{report.AtLeast, report.AtMost} {
		if got := row.Judge(report.Goal{Versus: report.Etcd, Sense: sense, Bound: 2}); got != report.Reached {
			t.Errorf("2 %v 2 is %s", sense, got)
		}
	}
}

func TestDocument(t *testing.T) {
	document := report.Document{
		Facts: []report.Fact{{"CPU", "an example"}, {"command", "`make bench-peers`"}},
		Goals: rows(),
		Costs: []report.Row{{
			Work: "CPU of the leader, acquire, 128 clients", Unit: report.Microseconds,
			Figures: map[report.System][]float64{report.Etcd: {172}, report.Leasenode: {67}},
		}},
		Reference: []report.Row{{
			Work: "acquire, 128 clients", Unit: report.PerSecond,
			Figures: map[report.System][]float64{report.Redis: {51234}, report.Leasenode: {12000}},
		}},
		Faults: []string{"etcd, get: 2 calls failed,\nthe first: timeout"},
	}
	const golden = "testdata/document.md"
	got := document.Markdown()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the document is not %s (-update writes it anew):\n%s", golden, got)
	}
}

func TestDocumentLeavesOutWhatWasNotMeasured(t *testing.T) {
	text := report.Document{Goals: rows()}.Markdown()
	for _, heading := range []string{"Redis", "What went wrong", "What a mutation costs"} {
		if strings.Contains(text, heading) {
			t.Errorf("it speaks of %q", heading)
		}
	}
}
