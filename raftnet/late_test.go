package raftnet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// packTogether makes entries hang, with as many on their way as there may be: what comes
// until resume is called is packed together.
func (m *member) packTogether(t *testing.T) (resume func()) {
	t.Helper()
	let := m.log.hang()
	filled := make(chan error, 2)
	for _, key := range []string{"x", "y"} {
		go func() { _, err := m.do(acquire(key, "o", lineTTL)); filled <- err }()
		synctest.Wait()
	}
	return func() {
		let()
		for range 2 {
			if err := <-filled; err != nil {
				t.Error(err)
			}
		}
	}
}

// A poll that was sent before one that is here does not replace it: who waits gives it
// up first.
func TestALatePollDoesNotReplaceTheNewer(t *testing.T) {
	inLine(t, 1, func(t *testing.T, _ *cluster, l *member) {
		b := l.poll("b", 10*time.Second, 0)
		newer := l.poll("a", 10*time.Second, 20*time.Millisecond)
		before := l.fsm.AppliedIndex()
		late := l.poll("a", 250*time.Millisecond, 10*time.Millisecond)
		later := l.poll("a", 2*time.Second, 0)
		newer.pending(t, "the newer")
		late.pending(t, "the late one")
		if used := l.fsm.AppliedIndex() - before; used != 0 {
			t.Errorf("late polls took %d entries", used)
		}
		began := time.Now()
		late.placed(t, "the late one", 1) // it has waited longer than b
		if took := time.Since(began); took != 250*time.Millisecond {
			t.Errorf("the late one was answered after %v", took)
		}
		later.placed(t, "the later one", 1)
		newer.pending(t, "the newer")
		l.must(t, release("holder", 1))
		newer.granted(t, "a", 2)
		b.pending(t, "b")
		b.cancel()
	})
}

// Of two late ones of the same time the one that came first is replaced, and of any the
// earlier by the later.
func TestALatePollReplacesThoseBeforeIt(t *testing.T) {
	inLine(t, 1, func(t *testing.T, _ *cluster, l *member) {
		newer := l.poll("a", 10*time.Second, time.Second)
		one := l.poll("a", 10*time.Second, 0)
		two := l.poll("a", 10*time.Second, 0)
		one.placed(t, "the first", 1)
		three := l.poll("a", 10*time.Second, 10*time.Millisecond)
		two.placed(t, "the second", 1)
		newer.cancel()
		<-newer.answer
		l.must(t, release("holder", 1))
		three.granted(t, "a", 2)
	})
}

// When the newer poll ends, the late one has the place: without a gap.
func TestALatePollTakesThePlaceOfOneThatEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, newer waiting){
		"by its time": func(t *testing.T, newer waiting) { newer.placed(t, "the newer", 1) },
		"by its call": func(t *testing.T, newer waiting) {
			newer.cancel()
			if got := <-newer.answer; !errors.Is(got.err, lease.ErrUnavailable) {
				t.Errorf("the newer: %v", got.err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLine(t, 1, func(t *testing.T, _ *cluster, l *member) {
				newer := l.poll("a", time.Second, 20*time.Millisecond)
				b := l.poll("b", 10*time.Second, 0)
				late := l.poll("a", 10*time.Second, 0)
				end(t, newer)
				late.pending(t, "the late one")
				l.must(t, release("holder", 1))
				late.granted(t, "a", 2)
				b.pending(t, "b")
				b.cancel()
			})
		})
	}
}

// The same before the newer one has been put into an entry: then nothing of the attempt
// is in the log, and the late one has to be.
func TestALatePollTakesThePlaceOfOneThatWasNeverTried(t *testing.T) {
	inLine(t, 1, func(t *testing.T, _ *cluster, l *member) {
		resume := l.packTogether(t)
		newer := l.poll("a", 10*time.Second, time.Second)
		late := l.poll("a", time.Second, 0)
		newer.cancel()
		if got := <-newer.answer; !errors.Is(got.err, lease.ErrUnavailable) {
			t.Errorf("the newer: %v", got.err)
		}
		resume()
		late.placed(t, "the late one", 1)
	})
}

// A late poll hears of the grant of the newer by an entry of its own, and what remains at
// that one.
func TestALatePollIsToldOfTheGrant(t *testing.T) {
	inLine(t, 3, func(t *testing.T, _ *cluster, l *member) {
		newer := l.poll("a", 10*time.Second, time.Second)
		late, later := l.poll("a", 10*time.Second, time.Millisecond), l.poll("a", 10*time.Second, 0)
		before := l.fsm.AppliedIndex()
		l.must(t, release("holder", 1))
		one, two, three := newer.granted(t, "a", 2), late.granted(t, "a", 2), later.granted(t, "a", 2)
		if !one.Changed || two.Changed || three.Changed {
			t.Errorf("changed: %v, %v, %v", one.Changed, two.Changed, three.Changed)
		}
		if two.Now.Add(two.Remaining) > one.Now.Add(one.Remaining) {
			t.Errorf("the late one has %v at %d, the newer %v at %d", two.Remaining, two.Now, one.Remaining, one.Now)
		}
		if used := l.fsm.AppliedIndex() - before; used != 3 {
			t.Errorf("%d entries", used)
		}
	})
}

// A grant for a newer poll whose call has ended is not given back under a late one that
// may be told of it; and what came after that entry was stamped is not told of it.
func TestAGrantIsNotGivenBackUnderALatePoll(t *testing.T) {
	for name, join := range map[string]func(l *member, hang func()) waiting{
		"that was here before": func(l *member, hang func()) waiting {
			w := l.poll("a", 10*time.Second, 0)
			hang()
			return w
		},
		"that comes meanwhile": func(l *member, hang func()) waiting { hang(); return l.poll("a", 10*time.Second, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			inLine(t, 3, func(t *testing.T, _ *cluster, l *member) {
				newer := l.poll("a", 10*time.Second, time.Second)
				released := make(chan error, 1)
				var resume func()
				late := join(l, func() {
					resume = l.log.hang()
					go func() { _, err := l.do(release("holder", 1)); released <- err }()
					synctest.Wait()
				})
				time.Sleep(400 * time.Millisecond) // of the bubble; the leader stays one
				newer.cancel()
				if got := <-newer.answer; !errors.Is(got.err, lease.ErrOutcomeUnknown) {
					t.Errorf("the newer: %v", got.err)
				}
				late.pending(t, "the late one")
				resume()
				if err := <-released; err != nil {
					t.Fatal(err)
				}
				if got := late.granted(t, "a", 2); got.Remaining > lineTTL-400*time.Millisecond {
					t.Errorf("it has %v", got.Remaining)
				}
				time.Sleep(time.Second)
				if view, err := l.fsm.Get("k"); err != nil || view.Record.OverAt(view.Now) {
					t.Errorf("given back under its holder: %+v, %v", view, err)
				}
			})
		})
	}
}

// Late polls end with the reign as all others do.
func TestLatePollsEndWithTheReign(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		polls := []waiting{l.poll("a", 10*time.Second, time.Second), l.poll("a", 10*time.Second, 0)}
		time.Sleep(time.Second) // so that nothing of them is in an entry
		began := time.Now()
		c.isolate(l)
		for _, w := range polls {
			if got := <-w.answer; !errors.Is(got.err, lease.ErrUnavailable) {
				t.Errorf("%v", got.err)
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("told after %v", took)
		}
	})
}

func TestTooManyPollsOfOneAttempt(t *testing.T) {
	inLine(t, 1, func(t *testing.T, _ *cluster, l *member) {
		const limit = 16
		var polls []waiting
		for i := range limit {
			polls = append(polls, l.poll("a", 10*time.Second, time.Duration(limit-i)*time.Second))
		}
		got := <-l.poll("a", 10*time.Second, 0).answer
		if exhausted, ok := errors.AsType[*lease.ExhaustedError](got.err); !ok || exhausted.Limit != limit || exhausted.Key != "k" {
			t.Errorf("one more: %v", got.err)
		}
		newest := l.poll("a", 10*time.Second, time.Minute)
		for _, w := range polls {
			w.placed(t, "one that was replaced", 1)
		}
		l.must(t, release("holder", 1))
		newest.granted(t, "a", 2)
	})
}

// The first poll of a wait, which a second one replaces before anything is known of the
// key, is told who is in the way all the same: the client has asked it for that.
func TestAPollThatIsReplacedBeforeTheKeyIsLookedAt(t *testing.T) {
	inLine(t, 1, func(t *testing.T, _ *cluster, l *member) {
		resume := l.packTogether(t)
		first := l.poll("a", 250*time.Millisecond, 0)
		second := l.poll("a", 10*time.Second, 10*time.Millisecond)
		resume()
		got := <-first.answer
		if held, ok := errors.AsType[*lease.HeldError](got.err); !ok || held.Record.Owner != "holder" || held.Place != 1 {
			t.Errorf("the first: %v, %v", got.Answer, got.err)
		}
		second.pending(t, "the second")
		l.must(t, release("holder", 1))
		second.granted(t, "a", 2)
	})
}

// The same if the key is free: then the first has it, and the second is told so too.
func TestAPollThatIsReplacedHasTheKey(t *testing.T) {
	inLine(t, 1, func(t *testing.T, _ *cluster, l *member) {
		l.must(t, release("holder", 1))
		resume := l.packTogether(t)
		first := l.poll("a", 250*time.Millisecond, 0)
		second := l.poll("a", 10*time.Second, 10*time.Millisecond)
		resume()
		one, two := first.granted(t, "a", 2), second.granted(t, "a", 2)
		if !one.Changed || two.Changed {
			t.Errorf("changed: %v, %v", one.Changed, two.Changed)
		}
		if _, err := l.Propose(context.Background(), []lease.Mutation{release("a", 2)}); err != nil {
			t.Fatal(err)
		}
	})
}
