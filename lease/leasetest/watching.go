package leasetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// longestSilence is how long a watch may not tell what a check waits for.
const longestSilence = 30 * time.Second

var errSilence = fmt.Errorf("what was awaited did not come in %v", longestSilence)

// watching is a watch under way. Each update that is taken is held against the rules
// that hold for all.
type watching struct {
	t    *trial
	pull func() (lease.WatchUpdate, error, bool)
	end  context.CancelCauseFunc

	position lease.Position // the latest
	entry    uint64         // of the latest event
	within   bool           // a listing that is not complete
}

// watch begins a watch. It is ended with its trial.
func (t *trial) watch(req lease.WatchRequest) *watching {
	w := &watching{t: t, end: func(error) {}}
	if t.err != nil {
		return w
	}
	t.steps = append(t.steps, fmt.Sprintf("watch %+v", req))
	if t.subject.Watcher == nil {
		t.failf("want a store that can be watched, got none")
		return w
	}
	ctx, cancel := context.WithCancelCause(t.ctx)
	next, stop := iter.Pull2(t.subject.Watcher.Watch(ctx, req))
	t.atEnd = append(t.atEnd, func() { cancel(context.Canceled); stop() })
	w.pull, w.end, w.position = next, cancel, req.After
	return w
}

// awaits bounds what is done until the function that it returns is called.
func (w *watching) awaits() func() bool {
	return time.AfterFunc(longestSilence, func() { w.end(errSilence) }).Stop
}

// take returns the next update, or false if there is none.
func (w *watching) take() (lease.WatchUpdate, bool) {
	if w.t.err != nil {
		return lease.WatchUpdate{}, false
	}
	u, err, more := w.pull()
	switch {
	case !more:
		w.t.failf("want the watch end with an error, got none")
	case err != nil:
		w.t.failf("want the watch go on, got %w", err)
	default:
		w.examine(u)
	}
	return u, w.t.err == nil
}

// examine holds an update against the rules of all updates.
func (w *watching) examine(u lease.WatchUpdate) {
	t := w.t
	w.within = (w.within || u.Reset) && !u.Synced
	if u.Reset {
		w.position, w.entry = lease.Position{}, 0
	}
	switch none := u.Position == (lease.Position{}); {
	case w.within && (!none || len(u.Events) > 0):
		t.failf("want neither events nor a position within a listing, got %+v", u)
	case !w.within && none && len(u.Events) > 0:
		t.failf("want a position, got %+v", u)
	case !none && (u.Position.Index < w.position.Index || w.position.ClusterID != "" && u.Position.ClusterID != w.position.ClusterID):
		t.failf("want no position from before %v, got %v", w.position, u.Position)
	case !u.Synced && !w.within && len(u.Records) > 0:
		t.failf("want records in a listing only, got %+v", u)
	}
	for i, e := range u.Events {
		w.examineEvent(e, u.Events[:i])
	}
	if !w.within {
		if n := len(u.Events); n > 0 {
			w.entry = u.Events[n-1].Index
		}
		if u.Position != (lease.Position{}) {
			w.position = u.Position
		}
		if w.position.Index < w.entry {
			t.failf("want a position after entry %d, which was told, got %v", w.entry, w.position)
		}
	}
}

// examineEvent holds an event against those before it in its update.
func (w *watching) examineEvent(e lease.Event, before []lease.Event) {
	t := w.t
	switch {
	case e.Index <= w.position.Index:
		t.failf("want no event up to %v, which was told, got %+v", w.position, e)
	case e.Kind == lease.Expired && e.At.Millis() < e.Record.LeaseUntil.Millis():
		t.failf("want it expire at its end, got %+v", e)
	}
	if len(before) == 0 {
		return
	}
	last := before[len(before)-1]
	switch {
	case e.Index < last.Index:
		t.failf("want events in log order, got %+v after %+v", e, last)
	case e.Index > last.Index || e.Kind != lease.Expired:
	case last.Kind != lease.Expired:
		t.failf("want an entry tell first what has expired, got %+v after %+v", e, last)
	case e.Record.LeaseUntil.Millis() < last.Record.LeaseUntil.Millis():
		t.failf("want what has expired in the order of the ends, got %+v after %+v", e, last)
	}
}

// begun takes the first update of a watch after which nothing has happened, and returns
// its position.
func (w *watching) begun() lease.Position {
	defer w.awaits()()
	u, ok := w.take()
	if ok && (len(u.Events)+len(u.Records) > 0 || u.Position == (lease.Position{})) {
		w.t.failf("want a watch begin with a position, and nothing else as nothing has happened, got %+v", u)
	}
	return u.Position
}

// theLast is the owner whose grant ends what a check looks at.
const theLast = "the last"

// last has a grant of key be the last thing that a check looks at.
func (t *trial) last(key string) { t.done(t.claimant(theLast).of(key).acquire()) }

// updates returns the updates up to that with the last event, which is left out.
func (w *watching) updates() (updates []lease.WatchUpdate) {
	defer w.awaits()()
	for {
		u, ok := w.take()
		if !ok {
			return updates
		}
		for i, e := range u.Events {
			if e.Record.Owner == theLast && strings.HasPrefix(e.Record.Key, w.t.keys) {
				u.Events = u.Events[:i]
				return append(updates, u)
			}
		}
		updates = append(updates, u)
	}
}

// events returns the events up to the last.
func (w *watching) events() (events []lease.Event) {
	for _, u := range w.updates() {
		events = append(events, u.Events...)
	}
	return events
}

// listing is what a watch has listed.
type listing struct {
	records map[string]lease.Record
	at      lease.Position
	now     lease.Instant
}

// listing takes a listing, from its beginning to its end.
func (w *watching) listing() listing {
	defer w.awaits()()
	l := listing{records: map[string]lease.Record{}}
	for first := true; ; first = false {
		u, ok := w.take()
		switch {
		case !ok:
			return l
		case u.Reset != first:
			w.t.failf("want a reset at the beginning of the listing and nowhere else, got %+v", u)
		}
		for _, r := range u.Records {
			l.records[r.Key] = r
		}
		if u.Synced {
			l.at, l.now = u.Position, u.Now
			return l
		}
	}
}

// fails takes what there is, and returns the error that the watch ends with.
func (w *watching) fails() error {
	defer w.awaits()()
	for w.t.err == nil {
		u, err, more := w.pull()
		switch {
		case !more:
			w.t.failf("want the watch end with an error, got none")
		case err != nil && errors.Is(err, errSilence):
			w.t.failf("want the watch fail, got %w", err)
		case err != nil:
			return err
		default:
			w.t.steps = append(w.t.steps, fmt.Sprintf("was told %+v", u))
		}
	}
	return errStopped
}

// happened returns events as words, with the clock in ms after the first.
func (t *trial) happened(events []lease.Event) (words []string) {
	for _, e := range events {
		words = append(words, fmt.Sprintf("%s %s %s %d @%d", e.Kind, claimant{t: t, key: e.Record.Key}.shortKey(), e.Record.Owner, e.Record.Epoch, e.At.Millis()-events[0].At.Millis()))
	}
	return words
}

// sameRecord expects got to be want, at the resolution of the wire.
func (t *trial) sameRecord(what string, got, want lease.Record) {
	if got.Key != want.Key || got.Owner != want.Owner || got.Epoch != want.Epoch || got.LeaseUntil.Millis() != want.LeaseUntil.Millis() ||
		got.ForgottenAtEpoch != want.ForgottenAtEpoch || !maps.Equal(got.Attributes, want.Attributes) {
		t.failf("want %s %+v, got %+v", what, want, got)
	}
}
