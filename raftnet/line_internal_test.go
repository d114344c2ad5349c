package raftnet

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/lease"
)

func quietMetrics() *Metrics { return NewMetrics(prometheus.NewRegistry()) }

// look takes in what polls were answered, and checks that they may be.
func (w *lineWorld) look() {
	for _, call := range w.calls {
		if call.p == nil || call.seen || !call.p.answered {
			continue
		}
		call.seen = true
		outcome := call.p.outcome
		var held *lease.HeldError
		var lost *lease.LostError
		switch {
		case outcome.Err == nil:
			w.told(call, outcome.Answer)
		case errors.As(outcome.Err, &held):
			if !call.timedOut && !call.replaced {
				w.t.Fatalf("the poll of %s that was sent at %v was told that it waits, though it is the newest", call.id, call.sent)
			}
		case errors.As(outcome.Err, &lost) && call.who.id == call.id && call.who.holding == 0:
			w.renew(call.who)
		}
	}
	w.check()
}

// told is a grant that a client hears of, if it still wants it.
func (w *lineWorld) told(call *lineCall, answer lease.Answer) {
	epoch := answer.Record.Epoch
	w.known[epoch] = true
	c := call.who
	if answer.Record.Owner != c.name {
		w.t.Fatalf("%s was told of epoch %d of %s", c.name, epoch, answer.Record.Owner)
	}
	if c.id != call.id || call.ctx.Err() != nil {
		return
	}
	c.holding = epoch
	w.beliefs = append(w.beliefs, lineBelief{epoch, call.sent + answer.Remaining})
}

// check fails if a client believes in a lease beyond its end, or if a poll that is live
// has no place.
func (w *lineWorld) check() {
	for _, b := range w.beliefs {
		if end, over := w.ended[b.epoch]; over && end < b.until {
			w.t.Fatalf("epoch %d ended at %v, and is believed in until %v", b.epoch, end, b.until)
		}
	}
	for _, call := range w.calls {
		if call.p == nil || call.seen || call.timedOut || call.replaced || call.ctx.Err() != nil {
			continue
		}
		x := call.p.waiter
		if x.line == nil && call.p.inFlight > 0 { // the reign is over, and it has that entry's outcome
			continue
		}
		if x.line == nil || x.newest() == nil || !x.inLine && x.inFlight == 0 {
			w.t.Fatalf("the poll of %s that was sent at %v waits in no line", call.id, call.sent)
		}
		if newest := x.newest(); newest.waited < call.waited {
			w.t.Fatalf("a poll of %s that waited %v goes before one that waited %v", call.id, newest.waited, call.waited)
		}
	}
}

// quiet lets all that is queued or on its way have its outcome.
func (w *lineWorld) quiet() {
	for range 1000 {
		for range w.entries {
			w.commit()
		}
		for _, e := range slices.Clone(w.entries) {
			w.settle(e)
		}
		w.pack()
		if len(w.entries) == 0 {
			return
		}
	}
	w.t.Fatal("it never comes to rest")
}

// step does one thing that may happen, drawn from all of them.
func (w *lineWorld) step(t *rapid.T) {
	some := func(name string, of func(*lineCall) bool) *lineCall {
		var which []*lineCall
		for _, call := range w.calls {
			if of(call) {
				which = append(which, call)
			}
		}
		if len(which) == 0 {
			return nil
		}
		return rapid.SampledFrom(which).Draw(t, name)
	}
	travels := func(call *lineCall) bool { return call.p == nil && call.ctx.Err() == nil }
	here := func(call *lineCall) bool { return call.p != nil && !call.seen }
	c := rapid.SampledFrom(w.who).Draw(t, "who")
	switch rapid.SampledFrom(strings.Fields(
		"send send send send deliver deliver deliver deliver deliver pass pack pack pack commit commit settle settle release release releaseTo leave cancel lose giveUp claim plain change",
	)).Draw(t, "step") {
	case "send":
		if c.holding == 0 {
			w.send(c)
		}
	case "deliver":
		if call := some("poll", travels); call != nil {
			w.deliver(call)
		}
	case "pass":
		w.pass(time.Duration(rapid.IntRange(1, 6).Draw(t, "ms")) * time.Millisecond)
	case "pack":
		if len(w.entries) < inFlightEntries {
			w.pack()
		}
	case "commit":
		w.commit()
	case "settle":
		if decided := slices.DeleteFunc(slices.Clone(w.entries), func(e *lineEntry) bool { return !e.decided }); len(decided) > 0 {
			w.settle(rapid.SampledFrom(decided).Draw(t, "entry"))
		}
	case "release":
		if c.holding > 0 {
			w.release(c, "")
		}
	case "releaseTo":
		if c.holding > 0 {
			w.release(c, rapid.SampledFrom(w.who).Draw(t, "to").name)
		}
	case "leave":
		if call := some("poll", here); call != nil {
			w.leave(call)
		}
	case "cancel": // the leader hears of it later
		if call := some("poll", here); call != nil {
			call.cancel()
		}
	case "lose":
		if call := some("poll", travels); call != nil {
			call.cancel()
		}
	case "giveUp":
		w.giveUp(c)
	case "claim":
		w.propose(w.acquire(c), "")
	case "plain":
		w.propose(lease.AcquireRequest{Key: "k", Owner: "plain", TTL: worldTTL}.Mutation(), "")
	case "change":
		w.change(rapid.IntRange(0, len(w.entries)).Draw(t, "committed"))
	}
}

func (w *lineWorld) giveUp(c *lineClient) {
	for _, call := range w.calls {
		if call.id == c.id {
			call.cancel()
		}
	}
	if c.holding == 0 {
		w.renew(c)
	}
}

// Whatever happens to polls, entries and leaders: nobody believes in a lease that is
// over, a poll is not told that it waits while it is the newest, and a grant that nobody
// can know of is given back. Afterwards everyone gets a turn.
func TestLinesWithPollsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newLineWorld(rt, 3)
		for range rapid.IntRange(20, 120).Draw(rt, "steps") {
			w.step(rt)
		}
		for _, call := range w.calls { // everyone goes
			call.cancel()
			if call.p != nil {
				w.leave(call)
			}
		}
		w.quiet()
		b := w.book
		if !b.record.OverAt(w.reading()) && b.id != "" && !w.known[b.record.Epoch] && !w.claimed[b.id] {
			rt.Fatalf("nobody knows of epoch %d of %s, and it was not given back", b.record.Epoch, b.id)
		}
		w.pass(worldPoll) // who is between two polls loses the place
		if len(w.ls.keys) > 0 || w.ls.count.Load() != 0 || len(w.ls.away) > 0 {
			rt.Fatalf("%d keys, %d waiters and %d who are away are left", len(w.ls.keys), w.ls.count.Load(), len(w.ls.away))
		}
		w.everyoneGetsATurn(rt)
	})
}

// everyoneGetsATurn has all wait, with polls that overlap and come in any order, and
// hold for an instant.
func (w *lineWorld) everyoneGetsATurn(t *rapid.T) {
	w.propose(lease.AcquireRequest{Key: "k", Owner: "plain", TTL: worldTTL}.Mutation(), "")
	for _, c := range w.who {
		w.renew(c)
		w.pass(5 * time.Millisecond) // longer than a poll is on its way
		w.quiet()
	}
	w.grants = nil
	change := rapid.IntRange(0, 5).Draw(t, "change")
	waiting := slices.Clone(w.who)
	for round := range 200 {
		if round == change {
			w.change(0)
		}
		var polls []*lineCall
		for range 2 {
			for _, c := range waiting {
				polls = append(polls, w.send(c))
			}
			w.pass(time.Millisecond)
		}
		for _, call := range rapid.Permutation(polls).Draw(t, "arrival") {
			w.deliver(call)
		}
		w.quiet()
		w.pass(2 * time.Millisecond)
		w.quiet()
		for _, c := range slices.Clone(waiting) {
			if c.holding > 0 {
				waiting = slices.DeleteFunc(waiting, func(o *lineClient) bool { return o == c })
				w.release(c, "")
			}
		}
		if len(waiting) == 0 {
			break
		}
	}
	if len(waiting) > 0 {
		w.t.Fatalf("%d never got a turn: grants %q", len(waiting), w.grants)
	}
}

// A poll may end by its time in the instant in which its call ends. If it was the last
// that could be told of a grant, that is given back.
func TestAGrantIsGivenBackWhenTheLastPollEndsByItsTime(t *testing.T) {
	w := newLineWorld(t, 1)
	a := w.who[0]
	first, second := w.send(a), w.send(a)
	w.deliver(first)
	w.pack()
	w.deliver(second)
	first.cancel() // the leader does not hear of it
	w.commit()
	w.settle(w.entries[0]) // the second has an item of its own now
	w.pack()
	second.cancel()
	w.commit()
	w.settle(w.entries[0])
	w.pass(worldPoll)
	w.leave(first)
	w.leave(second)
	w.quiet()
	if w.book.record.Epoch != 1 || !w.book.record.OverAt(w.reading()) || w.ls.count.Load() != 0 {
		t.Errorf("%d waiters, and the record is %+v at %d", w.ls.count.Load(), w.book.record, w.reading())
	}
}

// The order is by how long an attempt has waited, also if its polls come in any order and
// the leader changes.
func TestLinesKeepTheOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newLineWorld(rt, 4)
		w.everyoneGetsATurn(rt)
		if got := strings.Join(w.grants, ""); got != "abcd" {
			rt.Fatalf("granted in the order %s", got)
		}
	})
}
