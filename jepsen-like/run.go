package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/leasenode/leasenode/jepsen-like/check"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// The files of a run's folder.
const (
	historyFile  = "history.jsonl"
	scheduleFile = "schedule.json"
	shrunkFile   = "shrunk.json"
)

// chaos runs a campaign, judges it, tells what came of it, and looks for a smaller
// schedule if it is asked to.
func chaos(ctx context.Context, p process, c campaign) error {
	release, err := c.findBinary(ctx, p.stderr)
	if err != nil {
		return err
	}
	defer release()
	announce(p.stdout, c)
	r, broke := try(ctx, p.stdout, c, c.out)
	if broke != nil && !r.loaded {
		return fmt.Errorf("%w\nthe folder is %s", broke, c.out)
	}
	v, err := judge(r.run, c.out)
	if err != nil {
		return errors.Join(broke, err)
	}
	tell(p.stdout, ending{dir: c.out, run: r.run, verdict: v, warned: r.warned, ended: r.ended, unjudged: broke, bound: c.bound, repeat: c.repeat})
	if broke != nil && v.Status() != check.Fail {
		return broke
	}
	if broke != nil {
		fmt.Fprintf(p.stderr, "jepsen-like: besides, %v\n", broke)
	}
	if v.Status() == check.Fail && c.shrink > 0 && !r.ended {
		if err := shrink(ctx, p.stdout, c, v); err != nil {
			return err
		}
	}
	return outcome(v)
}

func announce(w io.Writer, c campaign) {
	what := fmt.Sprintf("%d nodes of %s", c.nodes, c.node)
	if len(c.endpoints) > 0 {
		what = "the cluster at " + strings.Join(c.endpoints, ",")
	}
	if c.broken != "" {
		what += ", broken on purpose (" + c.broken + ")"
	}
	fmt.Fprintf(w, "%s, %d clients, %d holders, %d faults in %v, seed %d\nfolder: %s\n",
		what, c.clients, c.holders, len(c.schedule.Steps), c.schedule.Time, c.seed, c.out)
	if len(c.left) > 0 {
		fmt.Fprintf(w, "left out: %s\n", leftOut(c.left))
	}
}

// leftOut names kinds of faults that were not chosen from, and says why.
func leftOut(kinds []nemesis.Kind) string {
	var names []string
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	return strings.Join(names, ", ") + ", which nobody can do to leasenode from outside: --node chaosnode takes them"
}

// shrinkTries is how often a smaller schedule may hold before it is taken as one that
// does not fail: what fails is partly luck.
const shrinkTries = 3

// shrink looks for a smaller schedule for as long as c says, and keeps the smallest.
func shrink(ctx context.Context, w io.Writer, c campaign, found check.Verdict) error {
	ctx, cancel := context.WithTimeout(ctx, c.shrink)
	defer cancel()
	var broke error
	n := 0
	small := nemesis.Shrink(ctx, c.schedule, func(s nemesis.Schedule) bool {
		for range shrinkTries {
			if ctx.Err() != nil || broke != nil {
				return false
			}
			n++
			again, err := failsAgain(ctx, c, attempt{schedule: s, number: n}, found)
			broke = err
			fmt.Fprintf(w, "shrink %d: %d faults in %v: %s\n", n, len(s.Steps), s.Time, map[bool]string{true: "fails again", false: "holds"}[again])
			if again {
				return true
			}
		}
		return false
	})
	text, err := small.Encode()
	path := filepath.Join(c.out, shrunkFile)
	if err := errors.Join(broke, err, os.WriteFile(path, text, 0o644)); err != nil {
		return err
	}
	fmt.Fprintf(w, "the smallest schedule found that fails has %d faults in %v: --schedule %s\n", len(small.Steps), small.Time, path)
	return nil
}

// attempt is a schedule to try, and which it is.
type attempt struct {
	schedule nemesis.Schedule
	number   int
}

// failsAgain runs c with another schedule and reports whether some check that failed
// before fails again.
func failsAgain(ctx context.Context, c campaign, a attempt, before check.Verdict) (bool, error) {
	c.schedule, c.time = a.schedule, a.schedule.Time
	c.out = filepath.Join(c.out, "shrink", fmt.Sprint(a.number))
	if err := os.MkdirAll(c.out, 0o755); err != nil {
		return false, err
	}
	r, err := try(ctx, io.Discard, c, c.out)
	if ctx.Err() != nil || r.ended {
		return false, nil // it had not the time to fail
	}
	if err != nil {
		return false, err
	}
	v, err := judge(r.run, c.out)
	return err == nil && failsLike(v, before), err
}
