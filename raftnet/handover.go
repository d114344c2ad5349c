package raftnet

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// cause is what let a waiter be tried.
type cause string

const (
	byRelease cause = "release"
	byExpiry  cause = "expiry"
	byTo      cause = "to"
)

// ReleaseTo has a release decided, after which owner to, which has to wait for the key,
// gets it in the same entry, out of turn. If to does not wait, it returns a
// [*lease.NotWaitingError], and nothing was done. Otherwise it returns as
// [Node.Propose] does for one mutation.
func (n *Node) ReleaseTo(ctx context.Context, m lease.Mutation, to string) (lease.Answer, error) {
	c := newCall(ctx, [][]byte{fsm.EncodeMutation(m)})
	c.items[0].mutation, c.items[0].to = &m, to
	outcomes, err := n.propose(ctx, c)
	if err != nil {
		return lease.Answer{}, err
	}
	return outcomes[0].Answer, outcomes[0].Err
}

// claim queues c, and notes for waiters with the name of an acquire in it that somebody
// else may come to know of their grant.
func (ls *lines) claim(c *call) error {
	named := false
	for i := range c.items {
		m := c.items[i].mutation
		named = named || m != nil && m.Op == lease.OpAcquire && m.RequestID != ""
	}
	if !named {
		return ls.queue.add(c)
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range c.items {
		m := c.items[i].mutation
		if l := ls.keys[m.Key]; l != nil && m.Op == lease.OpAcquire {
			if w := l.known[attemptName{m.Owner, m.RequestID}]; w != nil {
				w.claimed = true
			}
		}
	}
	return ls.queue.add(c)
}

// concern reports whether items need a plan: somebody waits, or is handed over to.
func (ls *lines) concern(items []*item) bool {
	if ls.count.Load() > 0 {
		return true
	}
	for _, it := range items {
		if it.to != "" || it.nudge {
			return true
		}
	}
	return false
}

// plan returns items, which are packed, as they go into entries: whoever is first in
// line comes directly after each release of its key, and before the first acquire of
// it by anyone else. current returns what is known of a key here.
func (ls *lines) plan(items []*item, current func(key string) (fsm.View, error)) []*item {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	planned := make([]*item, 0, len(items)+8)
	tried := map[string]bool{} // keys whose first in line has its chance in this plan
	try := func(l *line, p *poll, why cause) {
		if p != nil {
			planned = append(planned, ls.attempt(p, why))
		}
		tried[l.key] = true
	}
	for _, it := range items {
		m := it.mutation
		if m == nil { // a tick
			planned = append(planned, it)
			continue
		}
		l := ls.keys[m.Key]
		switch {
		case it.nudge:
			if l != nil && !tried[m.Key] {
				if p := l.head(""); p != nil {
					try(l, p, byExpiry)
					planned[len(planned)-1].nudge = true
					continue
				}
			}
			if l != nil {
				l.nudged = false
				ls.schedule(l)
			}
		case it.poll != nil && it.poll.answered: // by another item of it
			ls.settleLocked(it, lease.Outcome{Err: lease.ErrUnavailable})
		case m.Op == lease.OpAcquire && l != nil:
			if it.poll != nil {
				it.poll.waiter.proposed = true
			}
			if !tried[m.Key] {
				p := l.head("")
				if p != nil && it.poll != nil && p.waiter == it.poll.waiter {
					p = nil // it is the first itself
				}
				try(l, p, byExpiry)
			}
			planned = append(planned, it)
		case m.Op == lease.OpRelease && it.to != "":
			if !speaksFor(m, current) { // who owns nothing decides nothing
				planned = append(planned, it)
				if l != nil {
					try(l, l.head(""), byRelease)
				}
				continue
			}
			var p *poll
			if l != nil {
				p = l.head(it.to)
			}
			if p == nil {
				it.finish(lease.Outcome{Err: &lease.NotWaitingError{Key: m.Key, Owner: it.to}})
				continue
			}
			planned = append(planned, it)
			try(l, p, byTo)
		case m.Op == lease.OpRelease && l != nil:
			planned = append(planned, it)
			try(l, l.head(""), byRelease)
		default:
			planned = append(planned, it)
		}
	}
	return planned
}

// speaksFor reports whether m is about the latest grant, as far as this node knows:
// otherwise it is a repetition, or too late, and the log has the answer.
func speaksFor(m *lease.Mutation, current func(key string) (fsm.View, error)) bool {
	view, err := current(m.Key)
	return err != nil || view.Record.Owner == m.Owner && view.Record.Epoch == m.Epoch && !view.Record.OverAt(view.Now)
}

// attempt returns a packed item of p.
func (ls *lines) attempt(p *poll, why cause) *item {
	it := &item{call: newCall(ls.life, nil), body: p.body, mutation: &p.mutation, poll: p, why: why}
	it.state.Store(packed)
	p.inFlight++
	p.waiter.inFlight++
	return it
}

// settle gives an item of a poll its outcome.
func (ls *lines) settle(it *item, outcome lease.Outcome) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.settleLocked(it, outcome)
}

func (ls *lines) settleLocked(it *item, outcome lease.Outcome) {
	p := it.poll
	w := p.waiter
	p.inFlight--
	w.inFlight--
	if it.nudge && w.line != nil {
		w.line.nudged = false
	}
	var held *lease.HeldError
	switch {
	case outcome.Err == nil:
		ls.granted(it, outcome)
	case p.answered:
	case errors.As(outcome.Err, &held):
		if p.inFlight == 0 && (p.over || !w.inLine) {
			ls.answer(p, ls.stillHeld(w))
		}
	default:
		ls.answer(p, outcome)
		if code := lease.CodeOf(outcome.Err); code != lease.CodeUnavailable && code != lease.CodeOutcomeUnknown {
			ls.remove(w)
		}
	}
	if w.line != nil {
		ls.schedule(w.line)
	}
	ls.start(w)
	ls.tidy(w)
}

// granted notes a grant, new or found, and tells the poll in whose item it was made,
// and none else.
func (ls *lines) granted(it *item, outcome lease.Outcome) {
	p := it.poll
	w := p.waiter
	ls.remove(w)
	w.won = true
	if outcome.Answer.Changed && it.why != "" {
		ls.tell.handedOver(it.why)
	}
	switch {
	case !p.answered && p.ctx.Err() == nil:
		ls.answer(p, outcome)
		w.told = true
	case outcome.Answer.Changed && !w.told:
		w.grant = &outcome.Answer.Record
		if !p.answered {
			ls.answer(p, lease.Outcome{Err: fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, context.Cause(p.ctx))})
		}
	}
}
