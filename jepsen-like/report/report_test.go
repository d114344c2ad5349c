package report_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/history/historytest"
	"github.com/leasenode/leasenode/jepsen-like/report"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// out is where a test writes a report: a folder that is kept if REPORT_DIR says where.
func out(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(cmp.Or(os.Getenv("REPORT_DIR"), t.TempDir()), name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// example is a run with faults and events, of a store that wrap may break.
func example(length time.Duration, clients int, keys []string, wrap func(lease.Store) lease.Store) history.Run {
	run := historytest.Make(historytest.Setup{Seed: 7, Clients: clients, Keys: keys, Length: length, Loss: 8, Tries: 1, Wrap: wrap})
	run.Info.Name = "chaos"
	run.Info.Options = map[string]string{"faults": "all", "nodes": "3", "time": length.String(), "out": "results"}
	kinds := []string{"cut one off", "kill -9", "latency", "stop", "one-way loss"}
	for i := range int(length / (5 * time.Second)) {
		from := time.Duration(i)*5*time.Second + time.Second
		node := run.Info.Nodes[i%3]
		fault := history.Fault{Kind: kinds[i%len(kinds)], Targets: []string{node}, From: from, Until: from + time.Duration(2+i%5)*time.Second}
		run.Faults = append(run.Faults, fault)
		switch fault.Kind {
		case "kill -9":
			run.Events = append(run.Events, history.NodeEvent{Node: node, What: "killed", At: fault.From}, history.NodeEvent{Node: node, What: "started", At: fault.Until})
		case "stop":
			run.Events = append(run.Events, history.NodeEvent{Node: node, What: "stopped", At: fault.From}, history.NodeEvent{Node: node, What: "continued", At: fault.Until})
		}
	}
	return run
}

func keys(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("tenant-%d/orders", i+1))
	}
	return all
}

func write(t *testing.T, dir string, run history.Run, o check.Options) (check.Verdict, string) {
	t.Helper()
	verdict := check.Judge(run, o)
	if err := report.Write(dir, run, verdict); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, report.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return verdict, string(page)
}

func pictures(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "porcupine-*.html"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAPassingRun(t *testing.T) {
	dir := out(t, "pass")
	verdict, page := write(t, dir, example(time.Minute, 16, keys(6), nil), check.Options{Skip: map[string]string{"watched": "nobody watches"}})
	if verdict.Status() != check.Pass {
		t.Fatalf("%s", verdict.Summary())
	}
	for _, want := range []string{">pass</div>", "14 of 14 checks passed", "tenant-3/orders", "cut one off", "kill -9"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if found := pictures(t, dir); len(found) != 0 {
		t.Errorf("pictures of keys that passed: %v", found)
	}
}

func TestAFailingRun(t *testing.T) {
	dir := out(t, "fail")
	run := example(time.Minute, 16, keys(6), func(s lease.Store) lease.Store { return leasetest.RenewsAfterEnd{Store: s} })
	verdict, page := write(t, dir, run, check.Options{PerKey: 5 * time.Second})
	if verdict.Status() != check.Fail {
		t.Fatalf("%s", verdict.Summary())
	}
	found := pictures(t, dir)
	for _, want := range []string{">fail</div>", `id="v1"`, `data-show="1"`, `href="porcupine-1.html"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if len(found) == 0 {
		t.Error("no picture of a failing key")
	}
}

// A page has to stay usable when a run was long.
func TestALongRun(t *testing.T) {
	run := example(4*time.Minute, 40, keys(20), func(s lease.Store) lease.Store { return leasetest.ForgetsForAnyone{Store: s} })
	for n := len(run.Ops); len(run.Ops) < 60_000; n++ {
		op := run.Ops[n%1000]
		op.ID, op.Kind, op.Outcome = n+1_000_000, history.Get, history.Unavailable
		run.Ops = append(run.Ops, op)
	}
	_, page := write(t, out(t, "long"), run, check.Options{PerKey: 2 * time.Second})
	if most := 2 << 20; len(page) > most {
		t.Errorf("the page has %d bytes for %d operations, at most %d is usable", len(page), len(run.Ops), most)
	}
}

func TestNothingOfTheRunIsTakenForMarkup(t *testing.T) {
	const evil = `</script><img src=x onerror="boom()">'"` + "\u2028" + `{{.}}`
	run := example(20*time.Second, 4, []string{evil}, func(s lease.Store) lease.Store { return leasetest.RenewsAfterEnd{Store: s} })
	for i := range run.Ops {
		if run.Ops[i].Record.Owner != "" {
			run.Ops[i].Record.Owner += evil
		}
		if run.Ops[i].Owner != "" {
			run.Ops[i].Owner += evil
		}
	}
	run.Info.Name, run.Info.Options = evil, map[string]string{evil: evil}
	run.Info.Nodes = []string{evil}
	run.Faults[0].Kind, run.Faults[0].Detail = evil, evil
	run.Events = append(run.Events, history.NodeEvent{Node: evil, What: evil, Detail: evil})
	run.Recoveries = append(run.Recoveries, history.Recovery{Node: evil, Served: -1})
	dir := out(t, "evil")
	_, page := write(t, dir, run, check.Options{Skip: map[string]string{"watched": "nobody watches"}})
	pages := map[string]string{report.FileName: page}
	for _, path := range pictures(t, dir) {
		picture, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pages[path] = string(picture)
	}
	if len(pages) < 2 {
		t.Error("no picture to look at")
	}
	for name, text := range pages {
		if strings.Contains(text, "<img") || strings.Count(text, "</script>") != 1 {
			t.Errorf("%s takes a key or an owner for markup", name)
		}
		if found := stateAsMarkup.FindString(text); found != "" {
			t.Errorf("%s puts an owner into a page as HTML: %.200s", name, found)
		}
	}
}

// stateAsMarkup is what porcupine's script takes for HTML: see its use of innerHTML.
var stateAsMarkup = regexp.MustCompile(`"StateDescription":"(?:[^"\\]|\\.)*?\\u003c`)

// The page and the console have to tell the same of a run: what the harness's own probes
// ask is in neither.
func TestProbesAreNotCounted(t *testing.T) {
	run := history.Run{Info: history.Info{Seed: 1}}
	add := func(client string, outcome history.Outcome, times int) {
		for range times {
			run.Ops = append(run.Ops, history.Op{ID: len(run.Ops) + 1, Client: client, Kind: history.GetStale, Key: "of " + client, Outcome: outcome, Tries: 1, Return: 1})
		}
	}
	add("c1", history.OK, 2)
	add("probe", history.Invalid, 1) // a client of that name
	add("c2", history.Unavailable, 1)
	add("probe-n1", history.Unavailable, 300)
	_, page := write(t, out(t, "probes"), run, check.Options{})
	for _, want := range []string{
		"<dt>operations</dt><dd>4</dd>", "<dt>probes besides</dt><dd>300</dd>", "<dt>keys</dt><dd>3</dd>", "<dt>clients</dt><dd>3</dd>",
		"75.0 % were answered, 50.0 % were done.", ">unavailable 1<",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestAnEmptyRun(t *testing.T) {
	_, page := write(t, out(t, "empty"), history.Run{}, check.Options{Skip: map[string]string{"watched": "nobody watches"}})
	if !strings.Contains(page, ">unknown</div>") {
		t.Error("a run without anything is not called unknown")
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	if err := report.Write(filepath.Join(t.TempDir(), "none"), history.Run{}, check.Verdict{}); err == nil {
		t.Error("no error")
	}
}
