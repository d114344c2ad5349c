package historytest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

const (
	patience = time.Second // how long a client waits for an answer
	margin   = 200 * time.Millisecond
)

// client asks for one thing after the other, and holds what it gets.
type client struct {
	world *world
	name  string
	key   string

	epoch     uint64 // 0 if it has no lease that it knows of
	requestID string // of the attempt that has no answer yet
	attempts  int
	beliefs   int // index of the first belief of this grant
}

// next decides what to ask for.
func (c *client) next() {
	w := c.world
	if w.now > w.setup.Length {
		return
	}
	switch {
	case w.chance(20):
		c.ask(history.Op{Kind: history.Get})
	case w.chance(8):
		c.ask(history.Op{Kind: history.GetStale})
	case c.epoch == 0:
		if c.requestID == "" {
			c.attempts++
			c.requestID = fmt.Sprintf("%s/%d", c.name, c.attempts)
		}
		c.ask(history.Op{Kind: history.Acquire, Owner: c.name, TTL: c.ttl(), RequestID: c.requestID})
	case w.chance(12):
		c.cut(w.now)
		c.ask(history.Op{Kind: history.Release, Owner: c.name, Epoch: c.epoch})
	case w.chance(10):
		c.ask(history.Op{Kind: history.Forget, Owner: c.name, Epoch: c.epoch})
	case w.chance(8): // away for longer than the lease lasts
		w.after(3*time.Second+w.upTo(time.Second), c.next)
	default:
		c.ask(history.Op{Kind: history.Renew, Owner: c.name, Epoch: c.epoch, TTL: c.ttl()})
	}
}

// ttl varies, so that renewals may ask for less than there is.
func (c *client) ttl() time.Duration {
	return time.Second + time.Duration(c.world.random.IntN(1500))*time.Millisecond
}

// ask sends op through the network: there, and back, or not.
func (c *client) ask(op history.Op) {
	w := c.world
	w.nextID++
	op.ID, op.Client, op.Key, op.Tries, op.Call = w.nextID, c.name, c.key, w.setup.Tries, w.now
	there, back := w.upTo(40*time.Millisecond), w.upTo(40*time.Millisecond)
	if !w.chance(w.setup.Loss) {
		w.after(there, func() {
			c.perform(&op)
			w.after(back, func() { c.hear(op) })
		})
		return
	}
	switch w.random.IntN(4) {
	case 0: // lost on its way
	case 1: // late
		late := op
		w.after(w.upTo(4*time.Second), func() { c.perform(&late) })
	default: // its answer is lost
		lost := op
		w.after(there, func() { c.perform(&lost) })
	}
	w.after(patience, func() {
		op.Outcome, op.Error = history.Unknown, "no answer in time"
		if op.Kind == history.Get || op.Kind == history.GetStale {
			op.Outcome = history.Unavailable
		}
		c.hear(op)
	})
}

// perform has the store decide op, and notes the answer as the wire has it.
func (c *client) perform(op *history.Op) {
	ctx := context.Background()
	var answer lease.Answer
	var err error
	store := c.world.store
	switch op.Kind {
	case history.Acquire:
		answer, err = store.Acquire(ctx, lease.AcquireRequest{Key: op.Key, Owner: op.Owner, TTL: op.TTL, RequestID: op.RequestID})
	case history.Renew:
		answer, err = store.Renew(ctx, lease.RenewRequest{Key: op.Key, Owner: op.Owner, Epoch: op.Epoch, TTL: op.TTL})
	case history.Release:
		answer, err = store.Release(ctx, lease.ReleaseRequest{Key: op.Key, Owner: op.Owner, Epoch: op.Epoch})
	case history.Forget:
		answer, err = store.Forget(ctx, lease.ForgetRequest{Key: op.Key, Owner: op.Owner, Epoch: op.Epoch})
	case history.Get:
		answer, err = store.Get(ctx, lease.GetRequest{Key: op.Key})
	default:
		answer, err = store.Get(ctx, lease.GetRequest{Key: op.Key, Consistency: lease.Stale})
	}
	note(op, answer, err)
}

func note(op *history.Op, answer lease.Answer, err error) {
	var held *lease.HeldError
	var lost *lease.LostError
	switch {
	case err == nil:
		op.Outcome, op.Record, op.Changed = history.OK, answer.Record, answer.Changed
		op.Now, op.Remaining = wireInstant(answer.Now), answer.Remaining.Truncate(time.Millisecond)
		if op.Kind == history.Get || op.Kind == history.GetStale {
			op.Remaining = roundUp(answer.Remaining)
		}
	case errors.As(err, &held):
		op.Outcome, op.Record, op.Remaining = history.Held, held.Record, roundUp(held.Remaining)
	case errors.As(err, &lost):
		op.Outcome, op.Record, op.Remaining = history.Lost, lost.Record, roundUp(lost.Remaining)
	default:
		op.Outcome, op.Error = history.Unknown, err.Error()
	}
	op.Record.LeaseUntil = wireInstant(op.Record.LeaseUntil)
}

func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// hear takes the answer, or that there is none, and goes on after a while.
func (c *client) hear(op history.Op) {
	w := c.world
	op.Return = w.now
	w.run.Ops = append(w.run.Ops, op)
	switch {
	case op.Kind == history.Acquire && op.Outcome == history.OK:
		c.requestID, c.epoch, c.beliefs = "", op.Record.Epoch, len(w.run.Beliefs)
		c.believe(op)
	case op.Kind == history.Acquire && op.Outcome != history.Unknown:
		c.requestID = ""
	case op.Kind == history.Renew && op.Outcome == history.OK:
		c.believe(op)
	case op.Kind == history.Release, op.Outcome == history.Lost:
		c.cut(w.now)
		c.epoch = 0
	}
	w.after(w.upTo(300*time.Millisecond), c.next)
}

// believe notes that the client is certain from now to its deadline, and has it write
// now, and later, perhaps too late.
func (c *client) believe(op history.Op) {
	w := c.world
	deadline := op.Call + op.Remaining - margin
	if deadline <= w.now {
		return
	}
	w.run.Beliefs = append(w.run.Beliefs, history.Belief{Holder: c.name, Key: c.key, Epoch: c.epoch, From: w.now, Until: deadline})
	w.write(c.name, c.key, c.epoch)
	epoch := c.epoch
	w.after(w.upTo(5*time.Second), func() { w.write(c.name, c.key, epoch) })
}

// cut ends at a moment what the client believes.
func (c *client) cut(at time.Duration) {
	for i := c.beliefs; i < len(c.world.run.Beliefs); i++ {
		b := &c.world.run.Beliefs[i]
		if b.Holder == c.name && b.Key == c.key && b.Epoch == c.epoch {
			b.Until = max(b.From, min(b.Until, at))
		}
	}
}
