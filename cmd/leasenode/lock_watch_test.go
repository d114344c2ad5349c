package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
	"pgregory.net/rapid"
)

const ms = time.Millisecond

// TestWatchLife is a COMMAND that is started, stopped and killed, in the order of time.
func TestWatchLife(t *testing.T) {
	w := watch{grace: 100 * ms}
	steps := []struct {
		what string
		at   time.Duration
		tell func()
		want action
	}{
		{"ask first", 1000 * ms, nil, doAsk},
		{"no answer", 1100 * ms, nil, doNothing},
		{"held until 1500, counted from the question", 1200 * ms, func() { w.answered(500 * ms) }, doStart},
		{"ask again", 1250 * ms, nil, doAsk},
		{"an answer in time", 1260 * ms, func() { w.answered(400 * ms) }, doNothing}, // until 1650
		{"ask again", 1400 * ms, nil, doAsk},
		{"silence", 1649 * ms, nil, doNothing},
		{"the deadline", 1650 * ms, nil, doFence},
		{"told once", 1651 * ms, nil, doNothing},
		{"an answer too late changes nothing", 1660 * ms, func() { w.answered(time.Hour) }, doNothing},
		{"the last moment", 1749 * ms, nil, doNothing},
		{"the grace is over", 1750 * ms, nil, doKill},
		{"again", 1755 * ms, nil, doKill},
	}
	for _, step := range steps {
		if step.tell != nil {
			step.tell()
		}
		if got, _ := w.look(step.at); got != step.want {
			t.Fatalf("%s at %v: %v instead of %v", step.what, step.at, got, step.want)
		}
	}
}

// start is when, on their clock, the watches of these tests start.
const start = time.Hour

// started is a watch of a COMMAND that has started and may run for a second.
func started(t *testing.T) *watch {
	t.Helper()
	w := &watch{grace: 100 * ms}
	w.look(start)
	w.answered(time.Second)
	if do, _ := w.look(start); do != doStart {
		t.Fatalf("%v", do)
	}
	return w
}

func TestWatchTold(t *testing.T) {
	cases := []struct {
		name string
		tell func(*watch)
		want [3]action // at once, before and after the grace
	}{
		{"to fence", (*watch).fence, [3]action{doFence, doNothing, doNothing}},
		{"to kill", (*watch).kill, [3]action{doKill, doKill, doKill}},
		{"that it is not held", func(w *watch) { w.asking = true; w.answered(0) }, [3]action{doFence, doNothing, doNothing}},
		{"that it has ended", func(w *watch) { w.over(start); w.over(start + 50*ms) }, [3]action{doNothing, doNothing, doKill}},
		{"that it has ended after all", func(w *watch) { w.fence(); w.over(start) }, [3]action{doFence, doNothing, doKill}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w := started(t)
			c.tell(w)
			for i, at := range []time.Duration{start, start + 99*ms, start + 100*ms} {
				if got, _ := w.look(at); got != c.want[i] {
					t.Errorf("at %v: %v instead of %v", at, got, c.want[i])
				}
			}
		})
	}
	for name, tell := range map[string]func(*watch){"fence": (*watch).fence, "kill": (*watch).kill} {
		w := &watch{grace: 100 * ms}
		tell(w)
		if got, _ := w.look(start); got != doKill {
			t.Errorf("%s before the start: %v", name, got)
		}
	}
}

// TestWatchNeverLate holds, for any course of things, that the kill is due once the
// newest answer, counted from its question, and the grace have passed; that nothing is
// told to stop before that without a word of lock; and that no look is put off beyond
// what is due.
func TestWatchNeverLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := watch{grace: 100 * ms}
		now := start
		var asked, end time.Duration
		asking := false
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			do, pause := w.look(now)
			switch {
			case end > 0 && now >= end+w.grace && do != doKill:
				t.Fatalf("%v at %v, %v after the end", do, now, now-end)
			case (do == doKill || do == doFence) && now < end:
				t.Fatalf("%v at %v, %v before the end", do, now, end-now)
			case pause < 0 || pause > mostPause || (end > now && pause > end-now):
				t.Fatalf("a pause of %v at %v, with the end at %v", pause, now, end)
			case do == doAsk:
				asked, asking = now, true
			}
			now += time.Duration(rapid.Int64Range(1, int64(400*ms)).Draw(t, "later"))
			if asking && rapid.Bool().Draw(t, "answered") {
				left := time.Duration(rapid.Int64Range(1, int64(time.Second)).Draw(t, "left"))
				if !w.fenced {
					end = max(end, asked+left)
				}
				w.answered(left)
				asking = false
			}
		}
	})
}

// TestLockPromisesNoEndOfALease holds what is said of a lease that could not be released: a
// lease does not end while the cluster cannot serve.
func TestLockPromisesNoEndOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := leasetest.NewFaulty(leasetest.NewMemory(lease.NewSystemClock()))
		h, err := holder.New(store, holder.Config{Owner: "o", TTL: time.Second, Clock: lease.NewSystemClock()})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		l, err := h.Acquire(t.Context(), "cut/1")
		if err != nil {
			t.Fatal(err)
		}
		store.Cut()
		var said bytes.Buffer
		r := &lockRun{app: &app{process: process{stderr: &said}, timeout: 100 * time.Millisecond}, key: "cut/1", ttl: time.Second}
		r.giveBack(t.Context(), l)
		for _, part := range []string{`could not release "cut/1": `, "its lease ends by itself after 1s at most in which the cluster serves, and does not end while it does not\n"} {
			if !strings.Contains(said.String(), part) {
				t.Errorf("no %q in %q", part, said.String())
			}
		}
	})
}
