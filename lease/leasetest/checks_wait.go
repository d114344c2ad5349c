package leasetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func waitChecks() []Check {
	return []Check{
		{"who waits is granted in the order of coming, by the release", waitsInOrder},
		{"who does not wait is not served before those who do", plainDoesNotOvertake},
		{"a lease that ends is handed to the first in line", handedOverAtTheEnd},
		{"who leaves the line is not granted", leavesTheLine},
		{"a wait that is over is refused with the place in line", waitIsOver},
		{"an attempt that waits again has its place", keepsItsPlace},
		{"a release to a waiter hands over out of turn, to anyone else it does nothing", handsOverTo},
		{"waits are held to their limits", waitLimits},
	}
}

// longWait is longer than any check takes.
const longWait = 5 * time.Minute

// inLine is a call that waits. It is ended with its trial.
type inLine struct {
	who    claimant
	leave  context.CancelFunc
	joined chan lease.HeldError // told while waiting; the latest is enough
	ended  chan struct{}
	answer lease.Answer // set before ended is closed
	err    error
}

// waits has c wait for the key, and returns when it is in line, or was answered.
func (c claimant) waits(wait time.Duration) *inLine {
	w := &inLine{who: c, leave: func() {}, joined: make(chan lease.HeldError, 1), ended: make(chan struct{})}
	if c.t.err != nil || c.t.ctx.Err() != nil {
		w.err = errStopped
		close(w.ended)
		return w
	}
	c.t.steps = append(c.t.steps, c.step("wait for", 0))
	ctx, cancel := context.WithCancel(c.t.ctx)
	w.leave = cancel
	c.t.atEnd = append(c.t.atEnd, func() { cancel(); <-w.ended })
	ctx = lease.OnWaiting(ctx, func(held lease.HeldError) {
		select {
		case w.joined <- held:
		default:
		}
	})
	go func() {
		defer close(w.ended)
		w.answer, w.err = c.t.subject.Store.Acquire(ctx, lease.AcquireRequest{
			Key: c.key, Owner: c.owner, TTL: c.ttl, RequestID: c.requestID, Attributes: c.attributes, Wait: wait,
		})
	}()
	select {
	case held := <-w.joined:
		if held.Place < 1 {
			c.t.failf("want %q told its place in line, got %d", c.owner, held.Place)
		}
	case <-w.ended:
	}
	return w
}

// placed waits until the caller is told that this is the place in line now.
func (w *inLine) placed(place int) {
	t := w.who.t
	if t.err != nil {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case held := <-w.joined:
			if held.Place == place {
				return
			}
		case <-w.ended:
			t.failf("want %q told of place %d, got %w", w.who.owner, place, outcome(w.answer, w.err))
			return
		case <-timer.C:
			t.failf("want %q told of place %d, was not in %v", w.who.owner, place, patience)
			return
		}
	}
}

// patience is how long a store may take for what it does by itself.
const patience = 30 * time.Second

// granted waits for the grant of this epoch.
func (w *inLine) granted(epoch uint64) lease.Answer {
	t := w.who.t
	w.await()
	answer := t.done(w.answer, w.err)
	equal(t, "owner", answer.Record.Owner, w.who.owner)
	equal(t, "epoch", answer.Record.Epoch, epoch)
	t.changed(answer)
	if answer.Remaining <= 0 || answer.Remaining > w.who.ttl {
		t.failf("want it remain for up to %v, got %v", w.who.ttl, answer.Remaining)
	}
	return answer
}

// refused waits for the refusal.
func (w *inLine) refused() lease.HeldError {
	w.await()
	return w.who.t.held(w.answer, w.err)
}

// await waits for the answer.
func (w *inLine) await() {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.ended:
	case <-timer.C:
		w.who.t.failf("want an answer to %q, who waits, got none in %v", w.who.owner, patience)
		w.leave()
		<-w.ended
	}
}

// goesOn expects that there is no answer yet.
func (w *inLine) goesOn() {
	select {
	case <-w.ended:
		w.who.t.failf("want %q wait on, got %w", w.who.owner, outcome(w.answer, w.err))
	default:
	}
}

func waitsInOrder(t *trial) {
	t.inTime()
	a := t.claimant("a")
	a.granted(1)
	b, c, d := t.claimant("b").waits(longWait), t.claimant("c").waits(longWait), t.claimant("d").waits(longWait)
	t.passedOn(a.release(1))
	b.granted(2)
	c.goesOn()
	t.passedOn(t.claimant("b").release(2))
	c.granted(3)
	d.goesOn()
	t.passedOn(t.claimant("c").release(3))
	d.granted(4)
	entries := a.history()
	for i := 1; i+1 < len(entries); i += 2 {
		equal(t, "operation", entries[i].Op, lease.OpRelease)
		equal(t, "index of the grant after a release", entries[i+1].Index, entries[i].Index)
	}
}

func plainDoesNotOvertake(t *trial) {
	t.inTime()
	a, x := t.claimant("a"), t.claimant("x")
	a.granted(1)
	b, c := t.claimant("b").waits(longWait), t.claimant("c").waits(longWait)
	t.held(x.acquire())
	t.passedOn(a.release(1))
	equal(t, "holder", t.held(x.acquire()).Record.Owner, "b")
	b.granted(2)
	t.advance(ttl)
	equal(t, "holder", t.held(x.acquire()).Record.Owner, "c")
	c.granted(3)
}

func handedOverAtTheEnd(t *trial) {
	t.inTime()
	t.claimant("a").granted(1)
	b, c := t.claimant("b").waits(longWait), t.claimant("c").waits(longWait)
	t.advance(ttl - time.Millisecond)
	b.goesOn()
	t.advance(time.Millisecond)
	b.granted(2)
	c.goesOn()
}

func leavesTheLine(t *trial) {
	t.inTime()
	a := t.claimant("a")
	a.granted(1)
	b, c := t.claimant("b").waits(longWait), t.claimant("c").waits(longWait)
	b.leave()
	b.await()
	if b.err == nil {
		t.failf("want an error for who left the line, got epoch %d", b.answer.Record.Epoch)
	}
	c.placed(1) // a store that is far hears of it a little later
	t.passedOn(a.release(1))
	c.granted(2)
}

func waitIsOver(t *trial) {
	t.inTime()
	t.claimant("a").granted(1)
	b := t.claimant("b").waits(longWait)
	held := t.claimant("c").waits(100 * time.Millisecond).refused()
	equal(t, "place", held.Place, 2)
	equal(t, "holder", held.Record.Owner, "a")
	b.goesOn()
}

func keepsItsPlace(t *trial) {
	t.inTime()
	a := t.claimant("a")
	a.granted(1)
	b := t.claimant("b").attempt("attempt of b")
	first := b.waits(1500 * time.Millisecond)
	c := t.claimant("c").waits(longWait)
	equal(t, "place", first.refused().Place, 1)
	again := b.waits(longWait)
	t.passedOn(a.release(1))
	again.granted(2)
	c.goesOn()
}

func handsOverTo(t *trial) {
	t.inTime()
	a := t.claimant("a")
	a.granted(1)
	release := func(owner string) (lease.Answer, error) {
		return do(t, "release to "+owner, func() (lease.Answer, error) {
			return t.subject.Store.Release(t.ctx, lease.ReleaseRequest{Key: a.key, Owner: "a", Epoch: 1, To: owner})
		})
	}
	to := func(owner string) error { _, err := release(owner); return err }
	b, c := t.claimant("b").waits(longWait), t.claimant("c").waits(longWait)
	t.invalid("to", to(" "))
	t.invalid("to", to(strings.Repeat("o", lease.MaxOwnerBytes+1)))
	t.notWaiting("nobody", to("nobody"))
	t.shows(a.read(), state{owner: "a", epoch: 1, left: ttl})
	t.passedOn(release("c"))
	c.granted(2)
	b.goesOn()
}

func waitLimits(t *trial) {
	for _, wait := range []time.Duration{-time.Millisecond, lease.MaxWait + time.Millisecond} {
		req := lease.AcquireRequest{Key: t.key("k"), Owner: "a", TTL: ttl, Wait: wait}
		_, err := do(t, "wait "+wait.String(), func() (lease.Answer, error) { return t.subject.Store.Acquire(t.ctx, req) })
		t.invalid("wait", err)
	}
	answer, err := do(t, "wait the longest", func() (lease.Answer, error) {
		return t.subject.Store.Acquire(t.ctx, lease.AcquireRequest{Key: t.key("k"), Owner: "a", TTL: ttl, Wait: lease.MaxWait})
	})
	if errors.Is(err, errStopped) {
		return
	}
	equal(t, "epoch", t.done(answer, err).Record.Epoch, 1)
}
