package raftnet_test

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// While others wait, who queues again just after giving up the key has no entry of its
// own: it travels with the next one's release.
//
// A key that is looked at again in the very instant of its release may make one entry
// more, in vain; so the entries are counted up to three times.
func TestWhoQueuesAgainTravelsAlong(t *testing.T) {
	var used [2]uint64
	for range 3 {
		inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
			a, b := l.poll("a", 10*time.Second, 0), l.poll("b", 10*time.Second, 0)
			time.Sleep(time.Second)
			before := l.fsm.AppliedIndex()
			l.must(t, release("holder", 1))
			a.granted(t, "a", 2)
			again := l.poll("holder", 10*time.Second, 0)
			l.must(t, release("a", 2))
			b.granted(t, "b", 3)
			used[0] = l.fsm.AppliedIndex() - before
			l.must(t, release("b", 3))
			again.granted(t, "holder", 4)
			used[1] = l.fsm.AppliedIndex() - before
		})
		if used == [2]uint64{2, 3} {
			return
		}
	}
	t.Errorf("two handovers took %d entries, three %d", used[0], used[1])
}

// A new attempt gets an entry in the end, counted from its first poll, and at once if it
// is alone or came before whoever is first of those who had one.
func TestANewAttemptIsProposedInTime(t *testing.T) {
	const patience = 10 * time.Millisecond
	inLine(t, 1, func(t *testing.T, c *cluster, l *member) {
		last := l.fsm.AppliedIndex()
		entries := func(who string, want uint64) {
			t.Helper()
			now := l.fsm.AppliedIndex()
			if now-last != want {
				t.Errorf("%s: %d entries, want %d", who, now-last, want)
			}
			last = now
		}
		a := l.poll("a", 10*time.Second, time.Minute)
		entries("the only one", 1)
		b := l.poll("b", 10*time.Second, 0)
		time.Sleep(patience - time.Millisecond)
		b2 := l.poll("b", 10*time.Second, 0)
		b.placed(t, "b", 2)
		entries("one behind another, while it is patient", 0)
		time.Sleep(2 * time.Millisecond)
		entries("one behind another", 1)
		first := l.poll("first", 10*time.Second, 2*time.Minute)
		entries("one that has waited longest", 1)
		l.must(t, release("holder", 1))
		first.granted(t, "first", 2)
		a.cancel()
		b2.cancel()
	})
}

// A repetition of an attempt that was granted is told of that grant, as soon as a new
// one is told that the key is held; and of the end of it once it is over.
func TestARepetitionAmongWaitersIsNoNewAttempt(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		a, b := l.poll("a", 10*time.Second, 0), l.poll("b", 10*time.Second, 0)
		l.must(t, release("holder", 1))
		a.granted(t, "a", 2)
		l.poll("a", 10*time.Second, 0).granted(t, "a", 2)
		late := l.poll("a", 10*time.Second, 0)
		l.must(t, release("a", 2))
		late.granted(t, "a", 2) // it was sent before the release
		b.granted(t, "b", 3)
		got := <-l.poll("a", 10*time.Second, 0).answer
		if lease.CodeOf(got.err) != lease.CodeLost {
			t.Errorf("after the release: %+v", got)
		}
	})
}
