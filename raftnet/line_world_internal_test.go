package raftnet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// lineWorld is real lines and a real queue, with everything around them in the hands of a
// test: the log, the clock, and the network, which loses, delays and reorders polls. All
// happens on one goroutine, a step at a time.
type lineWorld struct {
	t       rapid.TB
	ls      *lines
	queue   *queue
	now     time.Duration // true time; the cluster's is less by lag
	lag     time.Duration
	number  uint64
	entries []*lineEntry // without their outcomes, in the order of the log
	book    lineBook
	who     []*lineClient
	calls   []*lineCall
	names   int

	ended   map[uint64]time.Duration // when the lease of an epoch ended at the latest instant that it may have
	known   map[uint64]bool          // somebody was told of the epoch, or may have been
	claimed map[string]bool          // request ids of acquires that do not wait
	beliefs []lineBelief
	grants  []string // owners, in the order of epochs
}

const (
	worldTTL  = 40 * time.Millisecond
	worldPoll = 10 * time.Millisecond
)

// lineEntry is an entry on its way.
type lineEntry struct {
	number   uint64
	items    []*item
	stamp    lease.Instant
	at       time.Duration // the true time of the stamp
	outcomes []lease.Outcome
	decided  bool
}

// lineBook is what the log says about the one key.
type lineBook struct {
	record lease.Record
	id     string
	over   map[string]bool // request ids of grants that were made
}

// lineClient waits for the key, holds it, gives it up, and waits again.
type lineClient struct {
	name    string
	id      string // request id of the present attempt
	began   time.Duration
	holding uint64 // the epoch it believes in
}

// lineCall is a poll of a client.
type lineCall struct {
	who      *lineClient
	id       string
	sent     time.Duration
	waited   time.Duration
	end      time.Duration // of its time in line; set when it joins
	ctx      context.Context
	cancel   context.CancelFunc
	p        *poll // nil while it travels
	timedOut bool
	replaced bool // by one that was sent later or at the same time
	seen     bool
}

// lineBelief is what a client takes for its lease: from its sending, for what remained.
type lineBelief struct {
	epoch uint64
	until time.Duration
}

func newLineWorld(t rapid.TB, clients int) *lineWorld {
	w := &lineWorld{t: t, queue: newQueue(), ended: map[uint64]time.Duration{}, known: map[uint64]bool{}, claimed: map[string]bool{}}
	w.book.over = map[string]bool{}
	w.ls = newLines(context.Background(), w.queue, nil)
	w.ls.tell = quietMetrics()
	w.ls.now = func() time.Duration { return w.now }
	w.ls.reading = func() (lease.Instant, bool) { return w.reading(), true }
	w.ls.begin()
	for i := range clients {
		w.who = append(w.who, &lineClient{name: string(rune('a' + i))})
		w.renew(w.who[i])
	}
	return w
}

func (w *lineWorld) reading() lease.Instant { return lease.Instant(time.Hour + w.now - w.lag) }

// renew begins another attempt.
func (w *lineWorld) renew(c *lineClient) {
	w.names++
	c.id, c.began, c.holding = fmt.Sprint(c.name, w.names), w.now, 0
}

func (w *lineWorld) acquire(c *lineClient) lease.Mutation {
	return lease.AcquireRequest{Key: "k", Owner: c.name, TTL: worldTTL, RequestID: c.id}.Mutation()
}

// send puts a poll on its way.
func (w *lineWorld) send(c *lineClient) *lineCall {
	call := &lineCall{who: c, id: c.id, sent: w.now, waited: (w.now - c.began).Truncate(2 * time.Millisecond)}
	call.ctx, call.cancel = context.WithCancel(context.Background())
	w.calls = append(w.calls, call)
	return call
}

// deliver lets a poll arrive.
func (w *lineWorld) deliver(call *lineCall) {
	m := lease.AcquireRequest{Key: "k", Owner: call.who.name, TTL: worldTTL, RequestID: call.id}.Mutation()
	p, err := w.ls.join(call.ctx, lease.Poll{Mutation: m, Wait: worldPoll, Waited: call.waited})
	if err != nil {
		w.t.Fatalf("join: %v", err)
	}
	call.p, call.end = p, w.now+worldPoll
	for _, o := range w.calls {
		if o != call && o.p != nil && o.id == call.id && o.waited <= call.waited {
			o.replaced = true
		}
	}
	w.look()
}

// leave ends the call of a poll that is with the leader.
func (w *lineWorld) leave(call *lineCall) {
	call.cancel()
	w.ls.leave(call.p, context.Canceled)
	w.look()
}

// pass lets time pass: polls end by their timers.
func (w *lineWorld) pass(d time.Duration) {
	for ; d > 0; d -= time.Millisecond {
		w.now += time.Millisecond
		for _, call := range w.calls {
			if call.p != nil && !call.timedOut && w.now >= call.end {
				call.timedOut = true
				w.ls.finish(call.p)
			}
		}
		w.ls.nudgeDue()
	}
	w.look()
}

// propose queues a mutation as [Node.Propose] does, or with a to as [Node.ReleaseTo].
func (w *lineWorld) propose(m lease.Mutation, to string) {
	c := newCall(context.Background(), [][]byte{fsm.EncodeMutation(m)})
	c.items[0].mutation, c.items[0].to = &m, to
	if err := w.ls.claim(c); err != nil {
		w.t.Fatalf("propose: %v", err)
	}
	if m.Op == lease.OpAcquire {
		w.claimed[m.RequestID] = true
	}
}

// release has c give up what it holds.
func (w *lineWorld) release(c *lineClient, to string) {
	w.propose(lease.ReleaseRequest{Key: "k", Owner: c.name, Epoch: c.holding}.Mutation(), to)
	w.beliefs = slices.DeleteFunc(w.beliefs, func(b lineBelief) bool { return b.epoch == c.holding })
	w.renew(c)
}

// pack makes an entry of what waits.
func (w *lineWorld) pack() {
	items := w.queue.take(fsm.MaxEntryBytes)
	if w.ls.concern(items) {
		items = w.ls.plan(items, func(string) (fsm.View, error) {
			return fsm.View{Record: w.book.record, Now: w.reading()}, nil
		})
	}
	for _, it := range items {
		if it.why != "" && it.poll.ctx.Err() != nil {
			w.t.Fatalf("%s is tried, whose call has ended", it.mutation.RequestID)
		}
	}
	if len(items) > 0 {
		w.number++
		w.entries = append(w.entries, &lineEntry{number: w.number, items: items, stamp: w.reading(), at: w.now})
	}
	w.look()
}

// commit has the log decide the first entry that is not.
func (w *lineWorld) commit() {
	for _, e := range w.entries {
		if e.decided {
			continue
		}
		for _, it := range e.items {
			e.outcomes = append(e.outcomes, w.apply(it.mutation, e))
		}
		e.decided = true
		return
	}
}

// settle tells the outcomes of an entry, which need not be the first.
func (w *lineWorld) settle(e *lineEntry) {
	w.entries = slices.DeleteFunc(w.entries, func(o *lineEntry) bool { return o == e })
	for i, it := range e.items {
		if !e.decided {
			it.finish(lease.Outcome{Err: lease.ErrOutcomeUnknown})
			continue
		}
		w.ls.learn(e.number, it.mutation, e.outcomes[i])
		it.finish(e.outcomes[i])
	}
	w.look()
}

// apply is the rules of acquire and release.
func (w *lineWorld) apply(m *lease.Mutation, e *lineEntry) lease.Outcome {
	b := &w.book
	over := b.record.OverAt(e.stamp)
	answer := lease.Answer{Record: b.record, Now: e.stamp, Remaining: b.record.RemainingAt(e.stamp)}
	switch {
	case m.Op == lease.OpRelease && (b.record.Owner != m.Owner || b.record.Epoch != m.Epoch):
		return lease.Outcome{Err: &lease.LostError{Record: b.record, Remaining: answer.Remaining}}
	case m.Op == lease.OpRelease && !over:
		w.end(b.record.Epoch, e.at)
		b.record.LeaseUntil = e.stamp
		return lease.Outcome{Answer: lease.Answer{Record: b.record, Now: e.stamp, Changed: true}}
	case m.Op == lease.OpRelease, m.RequestID != "" && m.RequestID == b.id && !over:
		return lease.Outcome{Answer: answer}
	case b.over[m.RequestID]:
		return lease.Outcome{Err: &lease.LostError{Record: b.record, Remaining: answer.Remaining}}
	case !over:
		return lease.Outcome{Err: &lease.HeldError{Record: b.record, Remaining: answer.Remaining}}
	}
	w.end(b.record.Epoch, e.at)
	b.record = lease.Record{Key: "k", Owner: m.Owner, Epoch: b.record.Epoch + 1, LeaseUntil: e.stamp.Add(m.TTL)}
	b.id = m.RequestID
	b.over[b.id] = b.id != ""
	w.grants = append(w.grants, m.Owner)
	return lease.Outcome{Answer: lease.Answer{Record: b.record, Now: e.stamp, Remaining: m.TTL, Changed: true}}
}

// end notes when an epoch's lease ended, if it had not before.
func (w *lineWorld) end(epoch uint64, at time.Duration) {
	if _, before := w.ended[epoch]; !before {
		w.ended[epoch] = at
	}
}

// change ends the reign and begins another of the same node. Of the entries on their way
// the first few come into the log; nobody is told.
func (w *lineWorld) change(committed int) {
	for range committed {
		w.commit()
	}
	w.ls.end(lease.ErrUnavailable)
	w.queue.failAll(lease.ErrUnavailable)
	for _, e := range slices.Clone(w.entries) {
		for i := range e.outcomes {
			e.outcomes[i] = lease.Outcome{Err: lease.ErrOutcomeUnknown}
		}
		w.settle(e)
	}
	w.known[w.book.record.Epoch] = true
	w.ls.begin()
	w.look()
}
