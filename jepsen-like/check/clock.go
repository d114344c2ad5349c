package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
	"github.com/leasenode/leasenode/lease"
)

// clock holds the cluster clock against the harness's.
func clock(s *subject, f *finding) {
	told, heard := toldOf(s.run.Ops), heardOf(s.run)
	f.Looked = len(told) + len(heard)
	tooFast(told, heard, s.options, f)
	backwards(told, heard, f)
	for _, key := range s.keys {
		endsEarly(s, key, f)
	}
}

// rounding is what whole milliseconds can hide.
const rounding = time.Millisecond

// told is an answer that tells the cluster clock, in milliseconds rounded down: one from
// least to most. A refusal tells it by the end of the lease and what remains.
type told struct {
	history.Op
	least, most lease.Instant
	heard       string // what it is, if it is no operation
}

func (t told) String() string {
	if t.heard != "" {
		return t.heard
	}
	return model.Describe(t.Op)
}

func toldOf(ops []history.Op) []told {
	var all []told
	for _, op := range ops {
		switch by := op.Record.LeaseUntil.Add(-op.Remaining); {
		case !answers(op):
		case op.Now != 0:
			all = append(all, told{Op: op, least: op.Now, most: op.Now})
		case op.Remaining > 0:
			all = append(all, told{Op: op, least: by, most: by.Add(rounding)})
		}
	}
	return all
}

// heardOf are the instants of what was heard to be in the log by a moment: of events that
// a watcher was told, of ends that a refusal tells, and of grants that a holder believed in
// or wrote with. How long it had been there is not known.
func heardOf(run history.Run) []told {
	var all []told
	heard := func(key string, now lease.Instant, at time.Duration, text string) {
		all = append(all, told{Op: history.Op{Key: key, Call: at, Return: at}, least: now, most: now, heard: text})
	}
	for _, op := range run.Ops {
		if (op.Outcome == history.Held || op.Outcome == history.Lost) && op.Remaining == 0 && op.Record.Epoch > 0 {
			// Of a lease that is over nothing remains, rounded up; it ended when it was released, or by time.
			all = append(all, told{Op: op, least: op.Record.LeaseUntil, most: op.Record.LeaseUntil})
		}
	}
	granted := map[grantOf]lease.Instant{}
	for _, w := range run.Watched {
		if w.Mark == history.WatchTold {
			heard(w.Key, w.At, w.When, w.Watcher+" was told "+toldText(w))
		}
		if w.Event == lease.Acquired.String() {
			granted[grantOf{w.Key, w.Epoch}] = w.At
		}
	}
	for _, e := range run.Stored {
		if e.Op == lease.OpAcquire {
			granted[grantOf{e.Key, e.Epoch}] = e.At
		}
	}
	for _, b := range run.Beliefs {
		if now, known := granted[grantOf{b.Key, b.Epoch}]; known {
			heard(b.Key, now, b.From, fmt.Sprintf("%q believed from %v on in epoch %d, granted at clock %d ms", b.Holder, brief(b.From), b.Epoch, now.Millis()))
		}
	}
	for _, w := range run.Writes {
		if now, known := granted[grantOf{w.Key, w.Token}]; known {
			heard(w.Key, now, w.At, fmt.Sprintf("%q wrote at %v with epoch %d, granted at clock %d ms", w.Holder, brief(w.At), w.Token, now.Millis()))
		}
	}
	return all
}

func (t told) called() time.Duration   { return t.Call }
func (t told) returned() time.Duration { return t.Return }

// byTime returns what was told in the order of when.
func byTime(all []told, when func(told) time.Duration) []told {
	return slices.SortedStableFunc(slices.Values(all), func(a, b told) int { return cmp.Compare(when(a), when(b)) })
}

// tooFast looks for two answers between which the cluster clock moved further than real
// time could, from the call of the first to the return of the second.
//
// What a mutation tells is in the log, which no reading of a later leader is behind, so
// that it may be held against all that were called before it returned. A read tells the
// clock of a leader, and what that is ahead of the log is lost with the leader: only an
// answer that came before the read was called is surely of an earlier instant.
func tooFast(all, heard []told, o Options, f *finding) {
	var mutations, reads []told
	for _, t := range byTime(slices.Concat(all, heard), told.returned) {
		if t.Kind == history.Get {
			reads = append(reads, t)
		} else {
			mutations = append(mutations, t)
		}
	}
	fasterThanTime(byTime(all, told.called), told.called, mutations, told.returned, o, f)
	fasterThanTime(byTime(all, told.returned), told.returned, byTime(reads, told.called), told.called, o, f)
}

// fasterThanTime holds each of later against those of all whose instant was not after
// its own. It is enough to take the one that was least ahead of real time when it was
// called.
func fasterThanTime(all []told, earlier func(told) time.Duration, later []told, own func(told) time.Duration, o Options, f *finding) {
	if len(all) == 0 {
		return
	}
	origin := all[0].least // keeps the numbers small
	ahead := func(now lease.Instant, at time.Duration) time.Duration {
		return now.Sub(origin) - time.Duration(float64(at)*(1+o.Rate))
	}
	first := all[0]
	for _, t := range later {
		for len(all) > 0 && earlier(all[0]) <= own(t) {
			if ahead(all[0].most, all[0].Call) < ahead(first.most, first.Call) {
				first = all[0]
			}
			all = all[1:]
		}
		if over := ahead(t.least, t.Return) - ahead(first.most, first.Call); over > rounding && earlier(first) <= own(t) {
			f.violation(by(fmt.Sprintf("the cluster clock moved by %v while at most %v of real time passed, %v too far: %s; and %s",
				brief(t.least.Sub(first.most)), brief(t.Return-first.Call), brief(over), first, t), first.Op, t.Op))
			first = t // a jump is told once
		}
	}
}

// backwards looks for an answer with a clock behind that of a mutation which was
// answered, or of an event that was told, before it was asked, whatever the keys.
func backwards(all, heard []told, f *finding) {
	var latest told
	returns := byTime(slices.Concat(all, heard), told.returned)
	for _, t := range byTime(all, told.called) {
		for len(returns) > 0 && returns[0].Return < t.Call {
			// A read tells the leader's clock, which may be lost with the leader.
			if returns[0].Kind != history.Get && returns[0].least > latest.least {
				latest = returns[0]
			}
			returns = returns[1:]
		}
		if t.most < latest.least {
			f.violation(by(fmt.Sprintf("the cluster clock went back by %v: %s; and after it %s", latest.least.Sub(t.most), latest, t), latest.Op, t.Op))
		}
	}
}

// endsEarly looks for a grant to the next that was answered before the ttl of the last
// acknowledged acquire or renewal of the lease before can have passed, though nobody can
// have released that.
func endsEarly(s *subject, key string, f *finding) {
	last := map[uint64]history.Op{} // the acquire or renewal of an epoch that lasts longest
	next := map[uint64]history.Op{} // the first answer that shows an epoch
	for _, op := range s.ops[key] {
		if !answers(op) {
			continue
		}
		epoch := op.Record.Epoch
		if before, known := next[epoch]; !known || op.Return < before.Return {
			next[epoch] = op
		}
		if before, known := last[epoch]; extends(op) && (!known || op.Call+op.Remaining > before.Call+before.Remaining) {
			last[epoch] = op
		}
	}
	for epoch := uint64(1); epoch < s.grants[key].latest; epoch++ {
		held, known := last[epoch]
		after, shown := next[epoch+1]
		if !known || !shown || len(s.grants[key].releases[epoch]) > 0 {
			continue
		}
		least := time.Duration(float64(held.Remaining) / (1 + s.options.Rate))
		if early := held.Call + least - rounding - after.Return; early > 0 {
			f.violation(by(fmt.Sprintf("a lease of %v ended %v early: %s; and then %s", held.Remaining, brief(early), model.Describe(held), model.Describe(after)), held, after))
		}
	}
}

// extends reports whether op was answered with time to hold.
func extends(op history.Op) bool {
	return op.Outcome == history.OK && (op.Kind == history.Acquire || op.Kind == history.Renew)
}
