package report

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
)

// view is what the page's template is filled with.
type view struct {
	Style  template.CSS
	Script template.JS

	Title      string
	Status     check.Status
	Headline   string
	Facts      []fact
	Options    []fact
	Checks     []check.Check
	Violations []violation
	Hidden     int // violations that were found and not kept
	Outcomes   []share
	Answered   string // per cent
	Done       string // per cent
	Kinds      []kindRow
	Columns    []history.Outcome
	Timeline   timeline
	Events     []history.NodeEvent
	Faults     []history.Fault
	Recoveries []history.Recovery
}

type fact struct{ Name, Value string }

type violation struct {
	check.Violation
	Number  int
	Picture string
}

// share is a part of all operations.
type share struct {
	Outcome history.Outcome
	Count   int
	Percent float64
}

type kindRow struct {
	Kind   history.Kind
	Counts []int
	Total  int
	Done   string // per cent that were done
}

var outcomes = []history.Outcome{history.OK, history.Held, history.Lost, history.Unavailable, history.Unknown, history.Exhausted, history.Invalid}

func viewOf(run history.Run, verdict check.Verdict, pictures map[string]string) view {
	v := view{
		Title: titleOf(run.Info), Status: verdict.Status(), Headline: headline(verdict),
		Facts: factsOf(run, verdict), Checks: verdict.Checks, Columns: outcomes,
		Events: run.Events, Faults: run.Faults, Recoveries: run.Recoveries,
	}
	for _, name := range slices.Sorted(maps.Keys(run.Info.Options)) {
		v.Options = append(v.Options, fact{name, run.Info.Options[name]})
	}
	for _, found := range verdict.Violations() {
		v.Violations = append(v.Violations, violation{Violation: found, Number: len(v.Violations) + 1, Picture: pictures[found.Key]})
	}
	for _, c := range verdict.Checks {
		v.Hidden += c.Found - len(c.Violations)
	}
	v.countOps(counted(run.Ops))
	v.Timeline = timelineOf(run, v.Violations)
	return v
}

func titleOf(info history.Info) string {
	return cmp.Or(info.Name, "run")
}

func headline(verdict check.Verdict) string {
	counts := map[check.Status]int{}
	found := 0
	for _, c := range verdict.Checks {
		counts[c.Status]++
		found += c.Found
	}
	parts := []string{fmt.Sprintf("%d of %d checks passed", counts[check.Pass], len(verdict.Checks)-counts[check.Skipped])}
	for _, part := range []struct {
		count int
		text  string
	}{{counts[check.Fail], "failed"}, {counts[check.Unknown], "could not tell"}, {counts[check.Skipped], "skipped"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.text))
		}
	}
	if found > 0 {
		parts = append(parts, plural(found, "violation"))
	}
	return strings.Join(parts, ", ")
}

func factsOf(run history.Run, verdict check.Verdict) []fact {
	i := run.Info
	facts := []fact{{"seed", strconv.FormatInt(i.Seed, 10)}}
	if len(i.Nodes) > 0 {
		facts = append(facts, fact{"nodes", fmt.Sprintf("%d (%s)", len(i.Nodes), strings.Join(i.Nodes, ", "))})
	}
	if !i.Began.IsZero() {
		facts = append(facts, fact{"began", i.Began.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	keys := map[string]bool{}
	clients := map[string]bool{}
	ops := counted(run.Ops)
	for _, op := range ops {
		keys[op.Key], clients[op.Client] = true, true
	}
	facts = append(facts, fact{"length", seconds(lengthOf(run))}, fact{"operations", grouped(len(ops))})
	if probes := len(run.Ops) - len(ops); probes > 0 {
		facts = append(facts, fact{"probes besides", grouped(probes)})
	}
	return append(
		facts,
		fact{"keys", grouped(len(keys))},
		fact{"clients", grouped(len(clients))},
		fact{"faults", grouped(len(run.Faults))},
		fact{"judged in", verdict.Took.Round(time.Millisecond).String()},
	)
}

// countOps counts what became of the operations.
func (v *view) countOps(ops []history.Op) {
	byKind := map[history.Kind]map[history.Outcome]int{}
	all := map[history.Outcome]int{}
	for _, op := range ops {
		if byKind[op.Kind] == nil {
			byKind[op.Kind] = map[history.Outcome]int{}
		}
		byKind[op.Kind][op.Outcome]++
		all[op.Outcome]++
	}
	for _, outcome := range outcomes {
		if n := all[outcome]; n > 0 {
			v.Outcomes = append(v.Outcomes, share{outcome, n, 100 * float64(n) / float64(len(ops))})
		}
	}
	answered := 0
	for outcome, n := range all {
		if Answered(outcome) {
			answered += n
		}
	}
	v.Done, v.Answered = Percent(all[history.OK], len(ops)), Percent(answered, len(ops))
	for _, kind := range []history.Kind{history.Acquire, history.Renew, history.Release, history.Forget, history.Get, history.GetStale} {
		if byKind[kind] == nil {
			continue
		}
		row := kindRow{Kind: kind}
		for _, outcome := range outcomes {
			row.Counts = append(row.Counts, byKind[kind][outcome])
			row.Total += byKind[kind][outcome]
		}
		row.Done = Percent(byKind[kind][history.OK], row.Total)
		v.Kinds = append(v.Kinds, row)
	}
}

var functions = template.FuncMap{
	"grouped": grouped,
	"seconds": seconds,
	"join":    strings.Join,
	"took":    func(r history.Recovery) string { return seconds(r.Served - r.Healed) },
	"ms":      func(d time.Duration) int64 { return d.Milliseconds() },
}

// seconds is a moment or a length, for people.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.3f s", d.Seconds())
	}
	return fmt.Sprintf("%d:%06.3f min", int(d.Minutes()), (d % time.Minute).Seconds())
}

func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return grouped(n) + " " + word + "s"
}
