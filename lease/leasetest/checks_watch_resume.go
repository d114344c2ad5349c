package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func resumeChecks() []Check {
	return []Check{
		{"a watch from now tells its position first, and nothing from before", beginsNow},
		{"a watch goes on after each position without a gap and without a repeat", goesOnAfterEach},
		{"a watch that has nothing to tell tells its position", tellsPositionsInSilence},
		{"a position of another cluster or of the future is refused", refusesForeignPositions},
		{"what is kept no longer is refused with the oldest position", refusesWhatIsGone},
		{"requests to watch are held to their limits", watchLimits},
		{"a watch ends with its context, and wraps the cause", watchEndsWithItsContext},
	}
}

func beginsNow(t *trial) {
	a := t.claimant("a")
	a.granted(1)
	w := t.watch(lease.WatchRequest{Key: a.key})
	at := w.begun()
	t.done(a.release(1))
	t.last(a.key)
	t.sequence("events", t.happened(w.events()), []string{"released k a 1 @0"})
	if t.err == nil && (at.ClusterID == "" || at.Index == 0) {
		t.failf("want a position of a cluster, got %v", at)
	}
}

func goesOnAfterEach(t *trial) {
	req := t.all()
	w := t.watch(req)
	positions := []lease.Position{w.begun()}
	a, b := t.claimant("a"), t.claimant("b").of(t.key("b"))
	for epoch := uint64(1); epoch <= 2; epoch++ {
		a.granted(epoch)
		b.granted(epoch)
		t.advance(time.Second)
		t.batch(a.renewal(epoch), b.renewal(epoch))
		t.done(a.forget(epoch))
		t.advance(ttl)
	}
	t.last(t.key("k"))
	var whole []lease.Event
	for _, u := range w.updates() {
		whole = append(whole, u.Events...)
		positions = append(positions, u.Position)
	}
	equal(t, "number of events", len(whole), 14)
	t.last(t.key("l")) // for the position after the last
	for _, req.After = range positions {
		if req.After == (lease.Position{}) {
			continue // nothing can go on there
		}
		var want []lease.Event
		for _, e := range whole {
			if e.Index > req.After.Index {
				want = append(want, e)
			}
		}
		t.sequence(fmt.Sprintf("events after %v", req.After), placed(t.watch(req).events()), placed(want))
	}
}

func tellsPositionsInSilence(t *trial) {
	w := t.watch(lease.WatchRequest{Key: t.key("silent")})
	at := w.begun()
	t.claimant("a").granted(1)
	defer w.awaits()()
	for {
		u, ok := w.take()
		if !ok {
			return
		}
		if len(u.Events) > 0 {
			t.failf("want nothing told but the position, got %+v", u)
		}
		if u.Position.Index > at.Index {
			return
		}
	}
}

// placed returns events as words that tell each from all others.
func placed(events []lease.Event) (words []string) {
	for _, e := range events {
		words = append(words, fmt.Sprintf("%d %s %s %d", e.Index, e.Kind, e.Record.Key, e.Record.Epoch))
	}
	return words
}

func refusesForeignPositions(t *trial) {
	here := t.watch(lease.WatchRequest{}).begun()
	for name, after := range map[string]lease.Position{
		"of another cluster":   {ClusterID: here.ClusterID + "x", Index: here.Index},
		"of no cluster":        {Index: here.Index},
		"of the future":        {ClusterID: here.ClusterID, Index: here.Index + 1<<40},
		"of the utmost future": {ClusterID: here.ClusterID, Index: 1<<64 - 1},
	} {
		for _, req := range []lease.WatchRequest{{After: after}, {After: after, Sync: true}} {
			t.part(name, func(t *trial) { t.invalid("after", t.watch(req).fails()) })
		}
	}
}

func refusesWhatIsGone(t *trial) {
	a := t.claimant("a")
	from := t.watch(lease.WatchRequest{}).begun()
	if t.subject.Compact == nil {
		return
	}
	a.granted(1)
	t.done(a.release(1))
	_, err := do(t, "compact", func() (struct{}, error) { return struct{}{}, t.subject.Compact(t.ctx) })
	if err != nil {
		t.failf("compact: %w", err)
	}
	var gone *lease.CompactedError
	err = t.watch(lease.WatchRequest{Prefix: t.keys, After: from}).fails()
	if !errors.As(err, &gone) {
		t.failf("want it refused as kept no longer, got %w", err)
		return
	}
	equal(t, "the position asked for", gone.After, from)
	if gone.Oldest.ClusterID != from.ClusterID || gone.Oldest.Index <= from.Index {
		t.failf("want the oldest position after %v, got %v", from, gone.Oldest)
	}
	w := t.watch(lease.WatchRequest{Prefix: t.keys, After: from, Sync: true})
	l := w.listing()
	t.sameRecord("the listed record", l.records[a.key], a.read().Record)
	oldest := t.watch(lease.WatchRequest{Prefix: t.keys, After: gone.Oldest})
	oldest.begun() // what happens next can make it too old
	t.last(a.key)
	for name, w := range map[string]*watching{"the listing": w, "the oldest position": oldest} {
		t.sequence("events after "+name, t.happened(w.events()), nil)
	}
}

func watchLimits(t *trial) {
	for _, c := range []struct {
		field string
		req   lease.WatchRequest
	}{
		{"key", lease.WatchRequest{Key: t.key("\x00")}},
		{"key", lease.WatchRequest{Key: "\xff"}},
		{"key", lease.WatchRequest{Key: strings.Repeat("k", lease.MaxKeyBytes+1)}},
		{"prefix", lease.WatchRequest{Prefix: strings.Repeat("p", lease.MaxKeyBytes+1)}},
		{"prefix", lease.WatchRequest{Key: t.key("k"), Prefix: t.keys}},
	} {
		t.part(fmt.Sprintf("%.60q", c.req.Key+c.req.Prefix), func(t *trial) { t.invalid(c.field, t.watch(c.req).fails()) })
	}
	for _, req := range []lease.WatchRequest{{Key: strings.Repeat("k", lease.MaxKeyBytes)}, {Prefix: strings.Repeat("p", lease.MaxKeyBytes)}, {Prefix: "\xff"}} {
		t.watch(req).begun()
	}
}

func watchEndsWithItsContext(t *trial) {
	cause := errors.New("the cause")
	w := t.watch(lease.WatchRequest{Key: t.key("k"), Sync: true})
	w.end(cause) // before it has begun
	if err := t.ended(w, cause); !errors.Is(err, lease.ErrUnavailable) {
		t.failf("want it unavailable as nobody has served it, got %w", err)
	}

	// Who serves it can fail in that very moment, but not each time.
	var err error
	for range maxTries {
		w = t.watch(lease.WatchRequest{Key: t.key("k")})
		w.begun()
		w.end(cause)
		if err = t.ended(w, cause); !errors.Is(err, lease.ErrUnavailable) {
			return
		}
	}
	t.failf("want no word of the store, which served it, got %w", err)
}

// ended expects w to fail for the end of its context, and with its cause.
func (t *trial) ended(w *watching, cause error) error {
	err := w.fails()
	if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, context.DeadlineExceeded) {
		t.failf("want the end of its context with the cause, got %w", err)
	}
	return err
}
