package leasetest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestMemoryEventsAreBounded(t *testing.T) {
	const kept = 10_000
	store := leasetest.NewMemory(newClock())
	begun := position(t, store)
	var after lease.Position // of the entry before the oldest that is kept
	for i := range kept + 10 {
		acquire(t, store, fmt.Sprint(i))
		if i == 9 {
			after = position(t, store)
		}
	}
	_, err := first(t, store, lease.WatchRequest{After: begun})
	gone, ok := errors.AsType[*lease.CompactedError](err)
	if !ok || gone.After != begun || gone.Oldest != after {
		t.Errorf("after the beginning: %v, want the oldest %v", err, after)
	}
	if u, err := first(t, store, lease.WatchRequest{After: after}); err != nil || len(u.Events) != 1 || u.Events[0].Record.Key != "10" {
		t.Errorf("after the oldest: %+v, %v", u, err)
	}
}

// What one entry did is kept whole, so that who has seen what went before can go on.
func TestMemoryKeepsTheLatestEntryHoweverLarge(t *testing.T) {
	const many = 10_500
	clock := newClock()
	store := leasetest.NewMemory(clock)
	for i := range many {
		acquire(t, store, fmt.Sprintf("%05d", i))
	}
	before := position(t, store)
	clock.Advance(time.Minute)
	u, err := first(t, store, lease.WatchRequest{After: before})
	if err != nil || len(u.Events) != many || u.Position.Index != u.Events[0].Index || u.Events[many-1].Index != u.Events[0].Index {
		t.Fatalf("%d events up to %v, %v", len(u.Events), u.Position, err)
	}
	if !slices.IsSortedFunc(u.Events, func(a, b lease.Event) int { return int(a.Record.LeaseUntil - b.Record.LeaseUntil) }) {
		t.Error("they are not in the order of their ends")
	}
}

// first returns the first update of a watch.
func first(t *testing.T, w lease.Watcher, req lease.WatchRequest) (lease.WatchUpdate, error) {
	for u, err := range w.Watch(soon(t), req) {
		return u, err
	}
	t.Fatal("the watch has no element")
	panic("unreachable")
}

// soon bounds what takes no time unless it is broken.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func position(t *testing.T, w lease.Watcher) lease.Position {
	t.Helper()
	u, err := first(t, w, lease.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return u.Position
}

// What is over when a watch begins was over before, whoever has found it.
func TestMemoryTellsNoEndFromBeforeAWatch(t *testing.T) {
	clock := newClock()
	store := leasetest.NewMemory(clock)
	acquire(t, store, "k")
	clock.Advance(time.Minute)
	for _, req := range []lease.WatchRequest{{}, {Key: "k"}} {
		if u, err := first(t, store, req); err != nil || len(u.Events) > 0 {
			t.Errorf("%+v: %+v, %v", req, u, err)
		}
	}
}

// A reader that falls behind what is kept is told so, or everything anew.
func TestMemoryCompactsUnderAWatch(t *testing.T) {
	for _, anew := range []bool{false, true} {
		store := leasetest.NewMemory(newClock())
		next := lease.Position{}
		var told []string
		for u, err := range store.Watch(soon(t), lease.WatchRequest{Sync: anew}) {
			if gone, ok := errors.AsType[*lease.CompactedError](err); ok && gone.After == next && !anew {
				told = append(told, "gone")
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if next = u.Position; len(told) == 0 {
				acquire(t, store, "k")
				store.Compact()
			}
			told = append(told, fmt.Sprint("reset ", u.Reset, ", records ", len(u.Records), ", events ", len(u.Events)))
			if len(u.Records) > 0 {
				break
			}
		}
		want := []string{"reset false, records 0, events 0", "gone"}
		if anew {
			want = []string{"reset true, records 0, events 0", "reset true, records 1, events 0"}
		}
		if !slices.Equal(told, want) {
			t.Errorf("sync %v: got %q, want %q", anew, told, want)
		}
	}
}

// Whoever has seen everything misses nothing, even if later entries had no events.
func TestMemoryCompactsNothingThatWasSeen(t *testing.T) {
	store := leasetest.NewMemory(newClock())
	acquire(t, store, "k")
	at := position(t, store)
	for range 3 {
		_, err := store.Acquire(t.Context(), lease.AcquireRequest{Key: "k", Owner: "x", TTL: time.Second})
		if lease.CodeOf(err) != lease.CodeHeld {
			t.Fatal(err)
		}
	}
	store.Compact()
	if u, err := first(t, store, lease.WatchRequest{After: at}); err != nil || len(u.Events) > 0 || u.Position.Index <= at.Index {
		t.Errorf("got %+v, %v", u, err)
	}
}

func TestMemoryPositionsAreOfOneStore(t *testing.T) {
	clock := newClock()
	a, b := leasetest.NewMemory(clock), leasetest.NewMemory(clock)
	if _, err := first(t, a, lease.WatchRequest{After: position(t, b)}); lease.CodeOf(err) != lease.CodeInvalid {
		t.Errorf("a position of another store: %v", err)
	}
}

func TestMemoryTellsCopies(t *testing.T) {
	store := leasetest.NewMemory(newClock())
	at := position(t, store)
	if _, err := store.Acquire(t.Context(), lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Minute, Attributes: map[string]string{"a": "1"}}); err != nil {
		t.Fatal(err)
	}
	for _, req := range []lease.WatchRequest{{After: at}, {Sync: true}} {
		u, err := first(t, store, req)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range append(u.Records, recordsOf(u.Events)...) {
			r.Attributes["a"] = "2"
		}
	}
	u, err := first(t, store, lease.WatchRequest{After: at})
	answer, _ := store.Get(t.Context(), lease.GetRequest{Key: "k"})
	if err != nil || u.Events[0].Record.Attributes["a"] != "1" || answer.Record.Attributes["a"] != "1" {
		t.Errorf("a reader has changed it: %+v, %v, %+v", u, err, answer)
	}
}

func recordsOf(events []lease.Event) (records []lease.Record) {
	for _, e := range events {
		records = append(records, e.Record)
	}
	return records
}

// Listings and what follows them make up the state, while many write on a clock that
// runs, and some watches begin late.
func TestMemoryIsWatchedConcurrently(t *testing.T) {
	const writers, rounds, keys = 4, 300, 150
	clock := newClock()
	store := leasetest.NewMemory(clock)
	ctx := soon(t)
	var watchers, group sync.WaitGroup
	watched := make([]map[string]lease.Record, 6)
	for i := range watched {
		watchers.Go(func() { watched[i] = watchState(t, ctx, store, lease.WatchRequest{Sync: true, Renewals: true}) })
	}
	for writer := range writers {
		group.Go(func() {
			for round := range rounds {
				key := fmt.Sprint((writer*31 + round) % keys)
				contend(t, store, lease.AcquireRequest{Key: key, Owner: fmt.Sprint(writer), TTL: time.Second * time.Duration(1+round%3)})
				clock.Advance(10 * time.Millisecond)
			}
		})
	}
	group.Wait()
	clock.Advance(time.Hour)
	if _, err := store.Acquire(ctx, lease.AcquireRequest{Key: "end", Owner: "end", TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
	watchers.Wait()
	want := watchState(t, ctx, store, lease.WatchRequest{Sync: true})
	for i, got := range watched {
		if !maps.EqualFunc(got, want, func(a, b lease.Record) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("watch %d: %d records, want %d", i, len(got), len(want))
		}
	}
}

// watchState returns the records of a listing and what followed, up to the key "end".
func watchState(t *testing.T, ctx context.Context, w lease.Watcher, req lease.WatchRequest) map[string]lease.Record {
	state := map[string]lease.Record{}
	for u, err := range w.Watch(ctx, req) {
		if err != nil {
			t.Error(err)
			return nil
		}
		for _, r := range append(u.Records, recordsOf(u.Events)...) {
			state[r.Key] = r
		}
		if _, ended := state["end"]; ended && u.Position != (lease.Position{}) {
			return state
		}
	}
	return nil
}
