package model

import (
	"slices"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// evidence is what all answers together show of a key, whatever their order.
type evidence struct {
	latest uint64 // the highest epoch that was shown
	epochs map[uint64]*epochEvidence
	floors map[uint64]bool // that were shown
}

type epochEvidence struct {
	owner string
	// granted and released say that an answer told of the change.
	granted, released, forgot bool
	// shown counts the answers with this epoch, alive those with its lease not over.
	shown, alive int
	// needed counts the ends of this lease, and the renewals after an end, for which no
	// answered operation accounts.
	needed int

	grantedAt int64      // if granted
	ends      []int64    // that were shown
	overs     []int64    // that were shown as over
	alives    []int64    // that were shown as not over, one for each answer
	renewed   []interval // what answered grants and renewals made of it
}

// interval is from the instant at which an answered mutation was decided to the end up
// to which it gave the lease.
type interval struct {
	at, until int64
	made      bool // it moved the end there, and did not find it there or later
}

func gather(inputs []*input) *evidence {
	ev := &evidence{epochs: map[uint64]*epochEvidence{}, floors: map[uint64]bool{}}
	for _, in := range inputs {
		ev.take(in)
	}
	for _, e := range ev.epochs {
		e.account()
	}
	return ev
}

// shownOf and aliveOf return how many answers have epoch, and have it alive.
func (ev *evidence) shownOf(epoch uint64) int {
	if e := ev.epochs[epoch]; e != nil {
		return e.shown
	}
	return 0
}

func (ev *evidence) aliveOf(epoch uint64) int {
	if e := ev.epochs[epoch]; e != nil {
		return e.alive
	}
	return 0
}

// grow returns what is known of epoch, to add to.
func (ev *evidence) grow(epoch uint64) *epochEvidence {
	e := ev.epochs[epoch]
	if e == nil {
		e = &epochEvidence{}
		ev.epochs[epoch] = e
	}
	return e
}

func (ev *evidence) take(in *input) {
	op := in.op
	ev.latest = max(ev.latest, op.Record.Epoch)
	ev.floors[op.Record.ForgottenAtEpoch] = true
	e := ev.grow(op.Record.Epoch)
	e.owner = op.Record.Owner
	e.shown++
	if alive(op) {
		e.alive++
		e.alives = append(e.alives, in.until)
	} else {
		e.overs = append(e.overs, in.until)
	}
	e.ends = append(e.ends, in.until)
	if op.Outcome != history.OK {
		return
	}
	switch op.Kind {
	case history.Acquire:
		e.granted = e.granted || op.Changed
		if op.Changed {
			e.grantedAt = in.now
			e.renewed = append(e.renewed, interval{in.now, in.now + in.ttl, true})
		}
	case history.Renew:
		e.renewed = append(e.renewed, interval{in.now, in.now + in.ttl, op.Changed})
	case history.Release:
		e.released = e.released || op.Changed
		if op.Changed {
			e.renewed = append(e.renewed, interval{in.now, in.now, true})
		}
	case history.Forget:
		e.forgot = e.forgot || op.Changed
	}
}

// account counts what answered operations do not account for.
func (e *epochEvidence) account() {
	slices.Sort(e.alives)
	slices.Sort(e.ends)
	e.ends = slices.Compact(e.ends)
	for _, end := range e.ends {
		if !slices.ContainsFunc(e.renewed, func(i interval) bool { return i.made && i.until == end }) {
			e.needed++
		}
	}
	slices.SortFunc(e.renewed, func(a, b interval) int { return int(a.at - b.at) })
	var until int64
	for i, r := range e.renewed {
		if i > 0 && r.at >= until {
			e.needed++
		}
		until = max(until, r.until)
	}
}

// endOf reports whether the end of epoch's lease can be from, or later, once placed of
// the answers that show it alive have their place: while a lease is not over its end
// only grows, so none that shows an earlier one may be left.
func (ev *evidence) endOf(epoch uint64, from int64, placed int) bool {
	e := ev.epochs[epoch]
	if e == nil {
		return true
	}
	earlier, _ := slices.BinarySearch(e.alives, from)
	return earlier <= placed
}

// releaseMatters reports whether anything that was shown would be wrong if epoch's
// lease had ended by time alone.
func (ev *evidence) releaseMatters(epoch uint64) bool {
	e, next := ev.epochs[epoch], ev.epochs[epoch+1]
	last := slices.Max(e.ends)
	for _, r := range e.renewed {
		last = max(last, r.until)
	}
	if slices.ContainsFunc(e.overs, func(end int64) bool { return end < last }) {
		return true
	}
	if next == nil || !next.granted {
		return epoch < ev.latest
	}
	return next.grantedAt < last
}

// worthwhile returns how many of at most n unanswered effects of op could matter for
// what was shown. None that could is left out.
func (ev *evidence) worthwhile(op history.Op, n int) int {
	many := func(most int) int {
		if n < 0 {
			return most
		}
		return min(n, most)
	}
	e := ev.epochs[op.Epoch]
	switch {
	case op.Kind == history.Acquire:
		return many(ev.openTo(op.Owner))
	case e == nil || e.owner != op.Owner:
		return 0
	case op.Kind == history.Renew:
		return many(min(2*e.needed, maxOpen))
	case op.Kind == history.Release && !e.released && ev.releaseMatters(op.Epoch):
		return many(1)
	case op.Kind == history.Forget && !e.forgot && ev.floors[op.Epoch]:
		return many(1)
	default:
		return 0
	}
}

// openTo counts the epochs of which no answer tells the grant, and that may have gone
// to owner.
func (ev *evidence) openTo(owner string) int {
	open := 0
	for epoch := uint64(1); epoch <= ev.latest && open < maxOpen; epoch++ {
		e := ev.epochs[epoch]
		if e == nil || !e.granted && e.owner == owner {
			open++
		}
	}
	return open
}

// maxOpen bounds how many effects an operation with uncounted tries is thought to have
// had without any answer.
const maxOpen = 2

// allows reports whether a grant of epoch to in contradicts nothing that was shown.
func (ev *evidence) allows(epoch uint64, in *input) bool {
	if epoch > ev.latest {
		return false // of use to nobody: as good as never
	}
	e := ev.epochs[epoch]
	return e == nil || !e.granted && e.owner == in.op.Owner
}
