package nemesis

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// bring brings the target from the state in which it was left into another, and tries
// the rest if something cannot be done.
func (r *runner) bring(w *world) error {
	var faults []error
	do := func(what string, node int, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("%s %s: %w", what, nodeName(node), err))
		}
	}
	for node := range w.links {
		r.bringLinks(w, node)
		if w.disks[node] != r.is.disks[node] {
			do("change the disk of", node, r.target.SetDisk(node, w.disks[node]))
		}
		if w.clocks[node] != r.is.clocks[node] {
			do("change the clock of", node, r.target.SetClock(node, r.clockChange(w, node)))
		}
		r.bringProcess(w, node, do)
	}
	for holder := range w.holders {
		if err := r.bringHolder(w, holder); err != nil {
			faults = append(faults, err)
		}
	}
	r.is = w
	return errors.Join(faults...)
}

func (r *runner) bringLinks(w *world, from int) {
	for to := range w.links {
		if w.links[from][to] != r.is.links[from][to] {
			r.target.SetLink(from, to, w.links[from][to])
		}
	}
	if w.clients[from] != r.is.clients[from] {
		r.target.SetClientLink(from, w.clients[from])
	}
}

// clockChange returns what to tell a clock: a jump is made once, when it is new.
func (r *runner) clockChange(w *world, node int) ClockState {
	change := w.clocks[node]
	change.Jump = max(0, change.Jump-r.is.clocks[node].Jump)
	return change
}

// bringProcess ends or starts a node, stops it or lets it go on.
func (r *runner) bringProcess(w *world, node int, do func(string, int, error)) {
	was, is := r.is, w
	stopped := was.stopped[node]
	switch {
	case is.ending[node] == killed && was.ending[node] != killed:
		do("kill", node, r.target.Kill(node))
	case is.ending[node] == terminated && was.ending[node] == runs:
		do("terminate", node, r.target.Terminate(node))
	case is.ending[node] == runs && was.ending[node] != runs:
		if stopped && !is.stopped[node] { // one that was to end may still stand
			do("continue", node, r.target.Continue(node))
		}
		do("start", node, r.target.Start(node))
		stopped = false
	case is.disks[node] == DiskHealthy && was.disks[node] != DiskHealthy && is.ending[node] == runs:
		do("start", node, r.target.Start(node)) // in case the disk has ended it
	}
	switch {
	case is.ending[node] != runs && !stopped:
		is.stopped[node] = false // what does not run cannot stand still
	case is.stopped[node] && !stopped:
		do("stop", node, r.target.Stop(node))
	case !is.stopped[node] && stopped:
		do("continue", node, r.target.Continue(node))
	}
}

func (r *runner) bringHolder(w *world, holder int) error {
	switch {
	case w.holders[holder] && !r.is.holders[holder]:
		if err := r.target.StopHolder(holder); err != nil {
			return fmt.Errorf("stop %s: %w", holderName(holder), err)
		}
	case !w.holders[holder] && r.is.holders[holder]:
		if err := r.target.ContinueHolder(holder); err != nil {
			return fmt.Errorf("continue %s: %w", holderName(holder), err)
		}
	}
	return nil
}

func nodeName(node int) string     { return "n" + strconv.Itoa(node+1) }
func holderName(holder int) string { return "h" + strconv.Itoa(holder+1) }

// names returns whom a step is about.
func names(step Step, nodes []int, all int) []string {
	if step.Kind == PauseHolder {
		return []string{holderName(step.Holder)}
	}
	var names []string
	for _, node := range nodes {
		names = append(names, nodeName(node))
	}
	if len(nodes) == 0 {
		for node := range all {
			names = append(names, nodeName(node))
		}
	}
	return names
}

// detail returns the parameters of a step that its kind and targets do not tell.
func detail(step Step) string {
	step.Kind, step.At, step.Nodes, step.Leader = "", 0, nil, false
	parts := struct {
		Every string      `json:"every,omitempty"`
		Link  *LinkState  `json:"link,omitempty"`
		Clock *ClockState `json:"clock,omitempty"`
	}{}
	if step.Every > 0 {
		parts.Every = step.Every.String()
	}
	if step.Link != (LinkState{}) {
		parts.Link = &step.Link
	}
	if step.Clock != (ClockState{}) {
		parts.Clock = &step.Clock
	}
	text, err := json.Marshal(parts)
	if err != nil || string(text) == "{}" {
		return ""
	}
	return string(text)
}
