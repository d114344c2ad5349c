package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// row is what runs with one kind of fault had.
type row struct {
	times  int // that the fault was done
	runs   int // in which it was
	looked map[string]int
	found  map[string]int
}

// printTable prints, as markdown, what the runs in folders had of each kind of fault,
// and how many things each check looked at in the runs that had it.
func printTable(w io.Writer, dirs []string) error {
	rows := map[string]*row{}
	var names []string
	for _, dir := range dirs {
		run, _, err := readRun(dir)
		if err != nil {
			return err
		}
		v := check.Judge(run, optionsFor(run))
		if names == nil {
			names = checkNames(v)
		}
		times := map[string]int{allRuns: len(run.Faults)}
		for _, fault := range run.Faults {
			times[fault.Kind]++
		}
		for kind, n := range times {
			if rows[kind] == nil {
				rows[kind] = &row{looked: map[string]int{}, found: map[string]int{}}
			}
			rows[kind].add(n, v)
		}
	}
	fmt.Fprintf(w, "| fault | times | runs | %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+3))
	for _, about := range nemesis.Kinds() {
		rows[string(about.Kind)].print(w, string(about.Kind), names)
	}
	rows[allRuns].print(w, allRuns, names)
	return nil
}

// allRuns is the row of all runs, whatever was done in them.
const allRuns = "all runs"

func checkNames(v check.Verdict) []string {
	var names []string
	for _, c := range v.Checks {
		names = append(names, c.Name)
	}
	return names
}

func (r *row) add(times int, v check.Verdict) {
	r.times += times
	r.runs++
	for _, c := range v.Checks {
		if c.Status != check.Skipped {
			r.looked[c.Name] += c.Looked
		}
		r.found[c.Name] += c.Found
	}
}

// print prints a row, if there is one. What broke a promise stands in bold.
func (r *row) print(w io.Writer, name string, names []string) {
	if r == nil {
		return
	}
	fmt.Fprintf(w, "| %s | %d | %d |", name, r.times, r.runs)
	for _, check := range names {
		fmt.Fprintf(w, " %d", r.looked[check])
		if r.found[check] > 0 {
			fmt.Fprintf(w, " **(%d wrong)**", r.found[check])
		}
		fmt.Fprint(w, " |")
	}
	fmt.Fprintln(w)
}
