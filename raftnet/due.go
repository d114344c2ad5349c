package raftnet

import (
	"container/heap"
	"errors"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// learn notes what the outcome of an item in entry number says about its key.
func (ls *lines) learn(number uint64, m *lease.Mutation, outcome lease.Outcome) {
	record := outcome.Answer.Record
	var held *lease.HeldError
	var lost *lease.LostError
	switch {
	case outcome.Err == nil:
	case errors.As(outcome.Err, &held):
		record = held.Record
	case errors.As(outcome.Err, &lost):
		record = lost.Record
	default:
		return
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if l := ls.keys[m.Key]; l != nil && number >= l.seen {
		l.record, l.seen = record, number
		ls.schedule(l)
	}
}

// schedule sets when the first in line is to be tried: at the end of the lease, if it
// is not under way already.
func (ls *lines) schedule(l *line) {
	due := l.record.LeaseUntil
	if l.nudged || l.record.Epoch == 0 || ls.keys[l.key] != l || l.head("") == nil {
		due = noInstant
	}
	if due == l.due {
		return
	}
	l.due = due
	ls.dues.fix(l)
	if l.index == 0 {
		signal(ls.wake)
	}
}

// lineRecheck is how often, at least, the lines are looked at while anybody waits: the
// clock of leases also runs while the machine sleeps, timers may not.
const lineRecheck = 100 * time.Millisecond

// lineLoop has the first in line tried when a lease ends, and forgets who stays away.
func (n *Node) lineLoop() {
	for {
		var again <-chan time.Time
		if wait := n.lines.nudgeDue(); wait > 0 {
			again = time.After(min(wait, lineRecheck))
		}
		select {
		case <-n.ctx.Done():
			return
		case <-n.lines.wake:
		case <-again:
		}
	}
}

// nudgeDue queues a nudge for each line that is due, and returns how long until the
// next is; 0 if nobody waits.
func (ls *lines) nudgeDue() time.Duration {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for w, until := range ls.away {
		if ls.now() >= until {
			ls.remove(w)
			ls.tidy(w)
		}
	}
	now, leads := ls.reading()
	if !leads || len(ls.keys) == 0 {
		return 0
	}
	for len(ls.dues) > 0 && ls.dues[0].due <= now {
		l := ls.dues[0]
		l.nudged = true
		c := newCall(ls.life, [][]byte{nil})
		c.items[0].mutation, c.items[0].nudge = &lease.Mutation{Key: l.key}, true
		if err := ls.queue.add(c); err != nil {
			l.nudged = false
			return lineRecheck
		}
		ls.schedule(l)
	}
	if len(ls.dues) == 0 {
		return lineRecheck
	}
	return ls.dues[0].due.Sub(now)
}

// dueLines is a heap of lines by when the first in line is to be tried.
type dueLines []*line

func (d dueLines) Len() int           { return len(d) }
func (d dueLines) Less(i, j int) bool { return d[i].due < d[j].due }

func (d dueLines) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].index, d[j].index = i, j
}

func (d *dueLines) Push(x any) {
	l := x.(*line)
	l.index = len(*d)
	*d = append(*d, l)
}

func (d *dueLines) Pop() any {
	last := len(*d) - 1
	l := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	l.index = -1
	return l
}

// fix puts l where it belongs by its due.
func (d *dueLines) fix(l *line) {
	switch {
	case l.due == noInstant && l.index >= 0:
		heap.Remove(d, l.index)
	case l.due == noInstant:
	case l.index >= 0:
		heap.Fix(d, l.index)
	default:
		heap.Push(d, l)
	}
}
