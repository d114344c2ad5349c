package raftnet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// poll is one call that waits.
type poll struct {
	lines    *lines
	waiter   *waiter
	ctx      context.Context
	mutation lease.Mutation
	body     []byte
	wait     time.Duration
	waited   time.Duration // says which of two polls was sent first
	inFlight int
	// first is the item that was queued for this poll itself; nil if there was none.
	first *item
	// over says that the poll is to be answered as soon as nothing of it is in flight.
	over     bool
	answered bool
	outcome  lease.Outcome // set before done is closed
	done     chan struct{}
}

// Wait has an acquire decided and, while the key is held, keeps it in line for as long
// as the poll says. It returns as [Node.Propose] does for one mutation, except that
// the [*lease.HeldError] of a poll that is over, or that a later one of the same
// request id has replaced, has the place in line. The later of two is the one with the
// larger Waited, and if they are equal the one that came later. One that comes after a
// later one stays until it is over, and takes its place if that ends first. A wait that
// has nothing in an entry ends with [lease.ErrUnavailable] when this node ceases to lead.
// Too many waiters, or polls of one attempt, are an [*lease.ExhaustedError].
//
// When ctx ends, the attempt leaves the line at once, unless another poll of it is here
// or a later one has replaced this one; a grant that is made in that instant is given
// back.
func (n *Node) Wait(ctx context.Context, lp lease.Poll) (lease.Answer, error) {
	if !n.Leads() {
		return lease.Answer{}, n.notLeader()
	}
	p, err := n.lines.join(ctx, lp)
	if err != nil {
		return lease.Answer{}, err
	}
	timer := time.NewTimer(waitWithin(ctx, lp.Wait))
	defer timer.Stop()
	outcome := func() lease.Outcome {
		for {
			select {
			case <-p.done:
				return p.outcome
			case <-timer.C:
				n.lines.finish(p)
			case <-ctx.Done():
				return n.lines.leave(p, context.Cause(ctx))
			case <-n.ctx.Done():
				return n.lines.leave(p, errors.New("this node is stopping"))
			}
		}
	}()
	return outcome.Answer, outcome.Err
}

// waitWithin returns how long a poll can stay in line so that who called still hears of
// its place.
func waitWithin(ctx context.Context, wait time.Duration) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return wait
	}
	const most = 50 * time.Millisecond
	left := time.Until(deadline)
	return min(wait, left-min(most, left/10))
}

// firstPatience is how long the first item of an attempt waits, at most, for an entry
// that is made for another reason. Whoever has given up a key queues again just when the
// next one has it and gives it up too: with an entry for each, a handover would be two.
const firstPatience = 10 * time.Millisecond

// patience returns until when the item of w's that is to be queued can wait for company:
// somebody before it in line is tried first anyway, so that it decides nothing but
// whether it repeats an earlier attempt.
func (w *waiter) patience() time.Time {
	first := w.line.head("")
	if w.proposed || first == nil || w.compare(first.waiter) < 0 {
		return time.Time{}
	}
	return time.Now().Add(firstPatience)
}

// maxPolls is how many polls of one attempt can be here, not answered and not replaced.
// They are more than one only while polls come in another order than they were sent, or
// somebody uses a request id anew. The newest is never refused.
const maxPolls = 16

// newest returns the poll of w that is tried next, nil if there is none.
func (w *waiter) newest() *poll {
	for _, p := range w.polls {
		if !p.over && p.ctx.Err() == nil {
			return p
		}
	}
	return nil
}

// newer returns how many polls of w waited longer before they were sent.
func (w *waiter) newer(waited time.Duration) int {
	at := 0
	for at < len(w.polls) && w.polls[at].waited > waited {
		at++
	}
	return at
}

// admit puts p, which has come, among the polls of its attempt. Those that were sent
// before it, or in the same millisecond, it replaces: a client that says nothing of how
// long it has waited means the latest that has come. One that has waited longer it
// does not replace. Nor is p answered then: a client that uses a request id anew would
// ask again at once, and again be told that it is late.
func (ls *lines) admit(p *poll) {
	w := p.waiter
	at := w.newer(p.waited)
	replaced := slices.Clone(w.polls[at:])
	w.polls = append(w.polls[:at], p)
	delete(ls.away, w)
	for _, old := range replaced {
		// While nothing is known of the key, its own item is what it can be told.
		if old.inFlight == 0 || w.line.record.Epoch > 0 && ls.withdrawn(old) {
			ls.answer(old, ls.stillHeld(w))
		} else {
			old.over = true
		}
	}
}

// start queues an item for the newest poll of w if it would not be tried otherwise: if
// the attempt has no place in the log of this reign yet, or has left the line, such as by
// a grant to an earlier poll, which is not this one's.
func (ls *lines) start(w *waiter) {
	for w.line != nil {
		p := w.newest()
		if p == nil || p.inFlight > 0 || w.proposed && w.inLine {
			return
		}
		err := ls.propose(p)
		if err == nil {
			return
		}
		ls.answer(p, lease.Outcome{Err: err})
		if len(w.polls) == 0 {
			ls.remove(w)
			ls.tidy(w)
		}
	}
}

// propose queues an item of p's own.
func (ls *lines) propose(p *poll) error {
	c := newCall(p.ctx, [][]byte{p.body})
	c.patient = p.waiter.patience()
	c.items[0].mutation, c.items[0].poll = &p.mutation, p
	if err := ls.queue.add(c); err != nil {
		return err
	}
	p.first = &c.items[0]
	p.inFlight++
	p.waiter.inFlight++
	return nil
}

// withdrawn takes back what of p is only queued, and reports whether then nothing of p
// is in flight, so that it can be answered.
func (ls *lines) withdrawn(p *poll) bool {
	if p.first != nil && p.first.state.CompareAndSwap(waiting, dropped) {
		p.inFlight--
		p.waiter.inFlight--
	}
	return p.inFlight == 0
}

// answer gives p its outcome.
func (ls *lines) answer(p *poll, outcome lease.Outcome) {
	p.answered, p.outcome = true, outcome
	close(p.done)
	w := p.waiter
	at := slices.Index(w.polls, p)
	if at < 0 {
		return
	}
	w.polls = slices.Delete(w.polls, at, at+1)
	if len(w.polls) == 0 && w.inLine {
		ls.away[w] = ls.now() + p.wait
		signal(ls.wake)
	}
}

// stillHeld is the outcome of a poll that ends without a grant.
func (ls *lines) stillHeld(w *waiter) lease.Outcome {
	l := w.line
	if l == nil || l.record.Epoch == 0 {
		return lease.Outcome{Err: fmt.Errorf("this poll has ended before the key was looked at: %w", lease.ErrUnavailable)}
	}
	held := &lease.HeldError{Record: l.record}
	if now, ok := ls.reading(); ok {
		held.Remaining = l.record.RemainingAt(now)
	}
	if at, in := l.find(w); in {
		held.Place = at + 1
	}
	return lease.Outcome{Err: held}
}

// finish ends the wait of p.
func (ls *lines) finish(p *poll) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	switch {
	case p.answered:
	case p.inFlight == 0:
		ls.answer(p, ls.stillHeld(p.waiter))
		ls.tidy(p.waiter) // its call may have ended, and it was the last that a grant could be told to
	default:
		p.over = true
	}
}

// leave ends p because its call ends, and returns what to tell it. Unless another poll
// has taken its place or takes it now, the attempt leaves the line.
func (ls *lines) leave(p *poll, cause error) lease.Outcome {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if p.answered {
		return p.outcome
	}
	err := lease.ErrOutcomeUnknown
	if ls.withdrawn(p) {
		err = lease.ErrUnavailable
	}
	w := p.waiter
	last := len(w.polls) == 1 && w.polls[0] == p
	ls.answer(p, lease.Outcome{Err: fmt.Errorf("%w: %w", err, cause)})
	if last {
		ls.remove(w)
	}
	ls.start(w)
	ls.tidy(w)
	return p.outcome
}
