package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/report"
)

// tally is the recorder of a run that also counts, for the progress line.
type tally struct {
	*history.Recorder

	mu     sync.Mutex
	counts counts
	active []history.Fault
}

// counts are what has happened so far.
type counts struct {
	ops    int // that have ended
	done   int // with an answer of the store, refusals included
	grants int // new ones, of clients
}

func newTally(r *history.Recorder) *tally { return &tally{Recorder: r} }

// AddOp takes the place of the recorder's.
func (t *tally) AddOp(op history.Op) {
	t.Recorder.AddOp(op)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.add(op)
}

func (c *counts) add(op history.Op) {
	if !report.Counts(op) {
		return
	}
	c.ops++
	if report.Answered(op.Outcome) {
		c.done++
	}
	if op.Kind == history.Acquire && op.Outcome == history.OK && op.Changed {
		c.grants++
	}
}

// setActive notes the faults there are now.
func (t *tally) setActive(active []history.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.active = active
}

// now returns the counts and the faults there are.
func (t *tally) now() (counts, []history.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts, t.active
}

// share says how many of the operations were answered.
func (c counts) share() string {
	if c.ops == 0 {
		return "none"
	}
	return report.Percent(c.done, c.ops)
}

// countOps counts the operations of a run that has ended.
func countOps(ops []history.Op) counts {
	var c counts
	for _, op := range ops {
		c.add(op)
	}
	return c
}

// countSnapshots says how many snapshots nodes finished, and how many of them died in the
// middle of one.
func countSnapshots(events []history.NodeEvent) string {
	var taken, received, killed int
	for _, e := range events {
		switch {
		case e.What == control.SnapshotTaken:
			taken++
		case e.What == control.SnapshotReceived:
			received++
		case e.What == control.Killed && e.Detail != "":
			killed++
		}
	}
	return fmt.Sprintf("%d taken, %d received; a node was killed in the middle of one %d times", taken, received, killed)
}

// slowest returns the longest recovery of a run, how many there were and how many were
// not within the bound.
func slowest(recoveries []history.Recovery) (longest time.Duration, failed int) {
	for _, r := range recoveries {
		if r.Served < 0 {
			failed++
		}
		longest = max(longest, r.Served-r.Healed)
	}
	return longest, failed
}
