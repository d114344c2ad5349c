package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/jepsen-like/report"
)

// The names in the options of a run's [history.Info].
const (
	optionNode     = "node"
	optionRepeat   = "repeat"
	optionBroken   = "broken"
	optionWorkload = "workload"
	optionRecovery = "recovery"
	optionLeftOut  = "left out"
)

// fastest is how much faster than right a clock runs at most, under the faults that the
// product promises to survive.
const fastest = 0.1

// judge judges a run and writes the report into its folder.
func judge(run history.Run, dir string) (check.Verdict, error) {
	v := check.Judge(run, optionsFor(run))
	return v, report.Write(dir, run, v)
}

// optionsFor returns what has to hold, which depends on what was done.
func optionsFor(run history.Run) check.Options {
	o := check.Options{Skip: map[string]string{}}
	if bound, err := time.ParseDuration(run.Info.Options[optionRecovery]); err == nil {
		o.Recovery = bound
	}
	if len(run.Watched) == 0 {
		o.Skip["watched"] = "nobody watched"
	}
	for _, fault := range run.Faults {
		switch nemesis.Kind(fault.Kind) {
		case nemesis.ClockFast:
			o.Rate = fastest
		case nemesis.ClockJump:
			o.Skip["clock"] = "clocks were made to jump"
		}
	}
	return o
}

// judgeFolder judges the run in a folder again.
func judgeFolder(w io.Writer, dir string) error {
	run, warned, err := readRun(dir)
	if err != nil {
		return err
	}
	v, err := judge(run, dir)
	if err != nil {
		return err
	}
	bound, _ := time.ParseDuration(run.Info.Options[optionRecovery])
	tell(w, ending{dir: dir, run: run, warned: warned, verdict: v, bound: bound, repeat: run.Info.Options[optionRepeat]})
	return outcome(v)
}

// readRun reads what a run's folder has of it. One that ended in the middle of a line is
// judged up to there.
func readRun(dir string) (history.Run, []string, error) {
	file, err := os.Open(filepath.Join(dir, historyFile))
	if errors.Is(err, os.ErrNotExist) {
		return history.Run{}, nil, usagef("%s is no folder of a run: it has no %s", dir, historyFile)
	}
	if err != nil {
		return history.Run{}, nil, err
	}
	defer file.Close() // it was only read
	run, err := history.Read(file)
	if err != nil && len(run.Ops) == 0 {
		return run, nil, err
	}
	if err != nil {
		return run, []string{fmt.Sprintf("only what could be read was judged: %v", err)}, nil
	}
	return run, nil, nil
}

// outcome returns the error that a verdict makes of a run.
func outcome(v check.Verdict) error {
	switch v.Status() {
	case check.Pass:
		return nil
	case check.Fail:
		return errFailed
	default:
		return errUnknown
	}
}

// ending is how a run ended, to be told.
type ending struct {
	dir     string
	run     history.Run
	verdict check.Verdict
	warned  []string
	ended   bool // before its time
	// unjudged is why not all that there was could be judged; nil if it was.
	unjudged error
	bound    time.Duration
	repeat   string // the command line that does it again
}

// tell tells the end of a run.
func tell(w io.Writer, e ending) {
	summary := e.verdict.Summary()
	if e.unjudged != nil && e.verdict.Status() == check.Pass {
		_, checks, _ := strings.Cut(summary, "\n")
		summary = fmt.Sprintf("NOT JUDGED: %v\n%s", e.unjudged, checks)
	}
	fmt.Fprintf(w, "\n%s", summary)
	if e.ended {
		fmt.Fprintln(w, "note: it was ended before its time: judged is what there was")
	}
	for _, warning := range e.warned {
		fmt.Fprintf(w, "note: %s\n", warning)
	}
	counts := countOps(e.run.Ops)
	fmt.Fprintf(w, "operations: %d, of which %s were answered\n", counts.ops, counts.share())
	longest, failed := slowest(e.run.Recoveries)
	fmt.Fprintf(w, "recovery: %d times a node served again after faults, the slowest after %v", len(e.run.Recoveries)-failed, longest.Round(time.Millisecond))
	if failed > 0 {
		fmt.Fprintf(w, "; %d times not within %v", failed, e.bound)
	}
	if e.run.Info.Options[optionNode] == chaosNode {
		fmt.Fprintf(w, "\nsnapshots: %s", countSnapshots(e.run.Events))
	}
	if left := e.run.Info.Options[optionLeftOut]; left != "" {
		fmt.Fprintf(w, "\nleft out: %s", left)
	}
	fmt.Fprintf(w, "\nreport: %s\n", filepath.Join(e.dir, report.FileName))
	if e.repeat != "" {
		fmt.Fprintf(w, "again:  %s\n", e.repeat)
	}
}

// failsLike reports whether some check failed in both.
func failsLike(a, b check.Verdict) bool {
	for _, c := range a.Checks {
		if c.Status == check.Fail && b.Check(c.Name).Status == check.Fail {
			return true
		}
	}
	return false
}
