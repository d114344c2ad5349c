package raftnet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// A grant belongs to the poll whose item is in the entry. One that comes while that
// entry is on its way is answered by an entry of its own: were it answered with the
// earlier one's, its holder would count from a later sending than the entry's stamp.
func TestAGrantIsOfThePollThatWasInTheEntry(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		first := l.poll("a", 10*time.Second, 0)
		resume := l.log.hang()
		released := make(chan error, 1)
		go func() { _, err := l.do(release("holder", 1)); released <- err }()
		synctest.Wait()
		filled := make(chan error, 1)
		go func() { _, err := l.do(acquire("x", "o", lineTTL)); filled <- err }()
		synctest.Wait()
		// Two entries are on their way: what comes now is packed after they have landed.
		time.Sleep(400 * time.Millisecond) // of the bubble; the leader stays one
		second := l.poll("a", 10*time.Second, 0)
		first.pending(t, "the first poll")
		sent := time.Now()
		resume()
		if err := errors.Join(<-released, <-filled); err != nil {
			t.Fatal(err)
		}
		one, two := first.granted(t, "a", 2), second.granted(t, "a", 2)
		end := one.Now.Add(one.Remaining)
		if one.Remaining != lineTTL || two.Now.Add(two.Remaining) > end {
			t.Errorf("the first has %v at %d, the second %v at %d", one.Remaining, one.Now, two.Remaining, two.Now)
		}
		if most := lineTTL - 400*time.Millisecond; two.Remaining > most {
			t.Errorf("the second poll, sent at %v, has %v, more than %v", sent, two.Remaining, most)
		}
	})
}

// A poll that a later one replaces is answered at once, and only the later is granted.
func TestALaterPollReplacesTheEarlier(t *testing.T) {
	inLine(t, 1, func(t *testing.T, c *cluster, l *member) {
		first := l.poll("a", 10*time.Second, 0)
		b := l.poll("b", 10*time.Second, 0)
		time.Sleep(time.Second)
		before := l.fsm.AppliedIndex()
		second := l.poll("a", 10*time.Second, 0)
		first.placed(t, "a", 1)
		if used := l.fsm.AppliedIndex() - before; used != 0 {
			t.Errorf("replacing a poll took %d entries", used)
		}
		first.cancel() // its call is over: that does not concern the second
		l.must(t, release("holder", 1))
		second.granted(t, "a", 2)
		b.pending(t, "b")
		b.cancel()
	})
}

// A grant for a call that has ended, of which nobody else can know, is given back.
func TestAGrantToACallThatEndedIsGivenBack(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		a, b := l.poll("a", 10*time.Second, 0), l.poll("b", 10*time.Second, 0)
		resume := l.log.hang()
		released := make(chan error, 1)
		go func() { _, err := l.do(release("holder", 1)); released <- err }()
		synctest.Wait()
		a.cancel()
		if got := <-a.answer; !errors.Is(got.err, lease.ErrOutcomeUnknown) {
			t.Errorf("a: %v", got.err)
		}
		resume()
		if err := <-released; err != nil {
			t.Fatal(err)
		}
		b.granted(t, "b", 3)
		// A repetition of what was given back never holds anything.
		if _, err := l.do(lease.AcquireRequest{Key: "k", Owner: "a", TTL: lineTTL, RequestID: "a"}.Mutation()); lease.CodeOf(err) != lease.CodeLost {
			t.Errorf("a again: %v", err)
		}
	})
}

// But not while somebody may come to know of it: a later poll, or the same attempt
// asked without waiting.
func TestAGrantThatSomebodyMayKnowOfIsNotGivenBack(t *testing.T) {
	for name, again := range map[string]func(l *member) waiting{
		"a later poll": func(l *member) waiting { return l.poll("a", 10*time.Second, 0) },
		"a plain acquire": func(l *member) waiting {
			w := waiting{answer: make(chan told, 1)}
			go func() {
				answer, err := l.do(lease.AcquireRequest{Key: "k", Owner: "a", TTL: lineTTL, RequestID: "a"}.Mutation())
				w.answer <- told{answer, err}
			}()
			synctest.Wait()
			return w
		},
	} {
		t.Run(name, func(t *testing.T) {
			inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
				a := l.poll("a", 10*time.Second, 0)
				resume := l.log.hang()
				released := make(chan error, 1)
				go func() { _, err := l.do(release("holder", 1)); released <- err }()
				synctest.Wait()
				second := again(l)
				a.cancel()
				<-a.answer
				resume()
				<-released
				second.granted(t, "a", 2)
				time.Sleep(time.Second)
				if view, err := l.fsm.Get("k"); err != nil || view.Record.OverAt(view.Now) {
					t.Errorf("given back under its holder: %+v, %v", view, err)
				}
			})
		})
	}
}

func TestReleaseToAWaiter(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		a, b := l.poll("a", 10*time.Second, 0), l.poll("b", 10*time.Second, 0)
		ctx := context.Background()
		_, err := l.ReleaseTo(ctx, release("holder", 1), "nobody")
		if refused, ok := errors.AsType[*lease.NotWaitingError](err); !ok || *refused != (lease.NotWaitingError{Key: "k", Owner: "nobody"}) {
			t.Errorf("to nobody: %v", err)
		}
		a.pending(t, "a")
		if _, err := l.ReleaseTo(ctx, release("holder", 1), "b"); err != nil {
			t.Fatal(err)
		}
		b.granted(t, "b", 2)
		if _, err := l.ReleaseTo(ctx, release("holder", 1), "b"); lease.CodeOf(err) != lease.CodeLost {
			t.Errorf("a repetition: %v", err)
		}
		a.pending(t, "a")
		a.cancel()
	})
}

// Who does not own the key cannot say who is next, though nobody owns it any more.
func TestAStrangersReleaseHandsOverToNobody(t *testing.T) {
	inLine(t, 3, func(t *testing.T, _ *cluster, l *member) {
		end := time.Now().Add(lineTTL)
		time.Sleep(lineTTL - 6*time.Second)
		first, last := l.poll("first", 10*time.Second, 0), l.poll("last", 10*time.Second, 0)
		time.Sleep(time.Until(end.Add(-2 * time.Millisecond)))
		done := make(chan struct{})
		for range 8 {
			go func() {
				for ; time.Since(end) < 10*time.Millisecond; time.Sleep(10 * time.Microsecond) {
					_, _ = l.ReleaseTo(context.Background(), release("stranger", 1), "last")
				}
				done <- struct{}{}
			}()
		}
		first.granted(t, "first", 2)
		for range 8 {
			<-done
		}
		last.pending(t, "last")
		last.cancel()
	})
}
