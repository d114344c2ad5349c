package raftnet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

const lineTTL = 40 * time.Second // polls of 10 s

// told is what a poll was answered.
type told struct {
	lease.Answer
	err error
}

// waiting is a poll under way.
type waiting struct {
	answer chan told
	cancel context.CancelFunc
}

// poll has owner wait for k, under a request id that is the owner's name.
func (m *member) poll(owner string, wait, waited time.Duration) waiting {
	ctx, cancel := context.WithCancel(context.Background())
	w := waiting{answer: make(chan told, 1), cancel: cancel}
	mutation := lease.AcquireRequest{Key: "k", Owner: owner, TTL: lineTTL, RequestID: owner}.Mutation()
	go func() {
		answer, err := m.Wait(ctx, lease.Poll{Mutation: mutation, Wait: wait, Waited: waited})
		w.answer <- told{answer, err}
	}()
	synctest.Wait()
	return w
}

// pending fails the test if the poll has been answered.
func (w waiting) pending(t *testing.T, who string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-w.answer:
		t.Errorf("%s: answered with epoch %d of %q, %v", who, got.Record.Epoch, got.Record.Owner, got.err)
	default:
	}
}

// granted waits for the grant of this epoch.
func (w waiting) granted(t *testing.T, who string, epoch uint64) lease.Answer {
	t.Helper()
	got := <-w.answer
	if got.err != nil || got.Record.Epoch != epoch || got.Record.Owner != who {
		t.Errorf("%s: want epoch %d, got epoch %d of %q, %v", who, epoch, got.Record.Epoch, got.Record.Owner, got.err)
	}
	return got.Answer
}

// placed waits for a refusal with this place in line.
func (w waiting) placed(t *testing.T, who string, place int) {
	t.Helper()
	got := <-w.answer
	var held *lease.HeldError
	if !errors.As(got.err, &held) || held.Place != place {
		t.Errorf("%s: want place %d, got %+v, %v", who, place, got.Answer, got.err)
	}
}

func release(owner string, epoch uint64) lease.Mutation {
	return lease.ReleaseRequest{Key: "k", Owner: owner, Epoch: epoch}.Mutation()
}

// history returns what happened to k: "7 acquire a 1".
func (m *member) history(t *testing.T) []string {
	t.Helper()
	view, err := m.fsm.History(fsm.HistoryQuery{Key: "k", Limit: 1000, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range view.Entries {
		lines = append(lines, fmt.Sprintf("%d %v %s %d", e.Index, e.Op, e.Owner, e.Epoch))
	}
	return lines
}

// inLine runs test with a leader of n nodes at which holder has k at epoch 1.
func inLine(t *testing.T, n int, test func(t *testing.T, c *cluster, l *member)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, n)
		defer c.close()
		l := c.leader()
		l.must(t, acquire("k", "holder", lineTTL))
		test(t, c, l)
	})
}

func (m *member) must(t *testing.T, mutation lease.Mutation) lease.Answer {
	t.Helper()
	answer, err := m.do(mutation)
	if err != nil {
		t.Fatalf("%v: %v", mutation.Op, err)
	}
	return answer
}

// Who came first is granted first, and in the entry that has the release.
func TestTheLineIsServedInOrder(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		a, b := l.poll("a", 10*time.Second, 0), l.poll("b", 10*time.Second, 0)
		before := l.fsm.AppliedIndex()
		l.must(t, release("holder", 1))
		a.granted(t, "a", 2)
		b.pending(t, "b")
		l.must(t, release("a", 2))
		b.granted(t, "b", 3)
		if used := l.fsm.AppliedIndex() - before; used != 2 {
			t.Errorf("two handovers took %d entries", used)
		}
		history := l.history(t)
		i := before + 1
		want := []string{
			fmt.Sprint(i, " release holder 1"), fmt.Sprint(i, " acquire a 2"),
			fmt.Sprint(i+1, " release a 2"), fmt.Sprint(i+1, " acquire b 3"),
		}
		if !slices.Equal(history[1:], want) {
			t.Errorf("got %q, want %q", history[1:], want)
		}
	})
}

func TestAPollEndsWithItsPlace(t *testing.T) {
	inLine(t, 1, func(t *testing.T, c *cluster, l *member) {
		began := time.Now()
		a, b := l.poll("a", 2*time.Second, 0), l.poll("b", time.Second, 0)
		b.placed(t, "b", 2)
		if took := time.Since(began); took != time.Second {
			t.Errorf("b waited %v", took)
		}
		b = l.poll("b", 4*time.Second, 0) // within its grace: its place is kept
		a.placed(t, "a", 1)
		time.Sleep(3 * time.Second) // a's grace is over
		b.placed(t, "b", 1)
		if b, err := l.do(acquire("k", "c", lineTTL)); lease.CodeOf(err) != lease.CodeHeld || err.(*lease.HeldError).Place != 0 {
			t.Errorf("who does not wait: %v, %v", b, err)
		}
	})
}

// A lease that ends by itself is handed over when it ends, to the first who is there.
func TestHandoverAtTheEnd(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		end := time.Now().Add(lineTTL)
		gone := l.poll("gone", time.Second, 0)
		gone.placed(t, "gone", 1)
		time.Sleep(lineTTL - 6*time.Second)
		away, b := l.poll("away", time.Second, time.Minute), l.poll("b", 10*time.Second, 0)
		away.placed(t, "away", 1)
		b.granted(t, "b", 2)
		if late := time.Since(end); late < 0 || late > 5*time.Millisecond {
			t.Errorf("granted %v after the end", late)
		}
	})
}

// A renewal moves the moment at which the first in line is tried.
func TestARenewalKeepsTheLineWaiting(t *testing.T) {
	inLine(t, 1, func(t *testing.T, c *cluster, l *member) {
		time.Sleep(lineTTL - 5*time.Second)
		a := l.poll("a", 10*time.Second, 0)
		before := l.fsm.AppliedIndex()
		l.must(t, lease.RenewRequest{Key: "k", Owner: "holder", Epoch: 1, TTL: lineTTL}.Mutation())
		a.placed(t, "a", 1)
		if used := l.fsm.AppliedIndex() - before; used > 11 { // the renewal, and a tick a second
			t.Errorf("%d entries", used)
		}
	})
}

// Who has gone leaves at once, and who is between two polls keeps the place but is
// passed over.
func TestTheDeadAreNotGranted(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		a, b := l.poll("a", 10*time.Second, 0), l.poll("b", time.Second, 0)
		d := l.poll("d", 10*time.Second, 0)
		a.cancel()
		if got := <-a.answer; !errors.Is(got.err, lease.ErrUnavailable) {
			t.Errorf("a: %v", got.err)
		}
		b.placed(t, "b", 1)
		l.must(t, release("holder", 1))
		d.granted(t, "d", 2)
		b = l.poll("b", 10*time.Second, 0)
		l.must(t, release("d", 2))
		b.granted(t, "b", 3)
	})
}

// A plain acquire does not overtake, whether it comes while the line waits, with the
// release, or when the lease has just ended.
func TestAPlainAcquireDoesNotOvertake(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		a, b := l.poll("a", 10*time.Second, 0), l.poll("b", 10*time.Second, 0)
		resume := l.log.hang() // what comes now is packed together
		outcomes := make(chan []lease.Outcome, 3)
		propose := func(ms ...lease.Mutation) {
			go func() {
				got, err := l.Propose(context.Background(), ms)
				if err != nil {
					t.Error(err)
				}
				outcomes <- got
			}()
			synctest.Wait()
		}
		for _, key := range []string{"x", "y"} {
			propose(acquire(key, "o", lineTTL))
		}
		propose(acquire("k", "early", lineTTL), release("holder", 1), acquire("k", "late", lineTTL))
		resume()
		var together []lease.Outcome
		for range 3 {
			if got := <-outcomes; len(got) > 1 {
				together = got
			}
		}
		for i, o := range together {
			if held := lease.CodeOf(o.Err) == lease.CodeHeld; held != (i%2 == 0) {
				t.Errorf("mutation %d: %v", i, o.Err)
			}
		}
		a.granted(t, "a", 2)
		b.pending(t, "b")
		b.cancel()
	})
}

func TestAPlainAcquireDoesNotOvertakeAtTheEnd(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		end := time.Now().Add(lineTTL)
		time.Sleep(lineTTL - 5*time.Second)
		a := l.poll("a", 10*time.Second, 0)
		time.Sleep(time.Until(end) - 20*time.Millisecond)
		stop := make(chan struct{})
		for i := range 4 {
			go func() {
				for time.Since(end) < 50*time.Millisecond {
					if _, err := l.do(acquire("k", fmt.Sprint("plain", i), lineTTL)); err == nil {
						t.Errorf("plain %d was granted %v after the end", i, time.Since(end))
					}
					time.Sleep(137 * time.Microsecond)
				}
				stop <- struct{}{}
			}()
		}
		a.granted(t, "a", 2)
		for range 4 {
			<-stop
		}
	})
}

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

// When the leader changes, those who wait are told that nothing was done; at the next
// leader their place is by how long they have waited.
func TestTheLineEndsWithTheReign(t *testing.T) {
	inLine(t, 3, func(t *testing.T, c *cluster, l *member) {
		a, b := l.poll("a", 10*time.Second, 0), l.poll("b", 10*time.Second, 0)
		time.Sleep(time.Second) // so that nothing of them is in an entry
		began := time.Now()
		c.isolate(l)
		for _, w := range []waiting{a, b} {
			if got := <-w.answer; !errors.Is(got.err, lease.ErrUnavailable) {
				t.Errorf("%v", got.err)
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("told after %v", took)
		}
		next := c.leader(l)
		c.heal()
		b, a = next.poll("b", 10*time.Second, time.Second), next.poll("a", 10*time.Second, 2*time.Second)
		next.must(t, release("holder", 1))
		a.granted(t, "a", 2)
		b.pending(t, "b")
		b.cancel()
		if _, err := l.Wait(context.Background(), lease.Poll{Mutation: acquire("k", "x", lineTTL), Wait: time.Second}); !errors.Is(err, lease.ErrUnavailable) {
			t.Errorf("at the old leader: %v", err)
		}
	})
}

func TestStoppingTellsWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 1)
		l := c.leader()
		l.must(t, acquire("k", "holder", lineTTL))
		a := l.poll("a", 10*time.Second, 0)
		began := time.Now()
		c.close()
		if got := <-a.answer; !errors.Is(got.err, lease.ErrUnavailable) || time.Since(began) > time.Second {
			t.Errorf("after %v: %v", time.Since(began), got.err)
		}
	})
}

// A thousand handovers cost a thousand entries, and no acquire that is refused.
func TestThereIsNoHerd(t *testing.T) {
	inLine(t, 1, func(t *testing.T, c *cluster, l *member) {
		const n = 1000
		order := make(chan string, n)
		var waiters []waiting
		for i := range n {
			waiters = append(waiters, l.poll(fmt.Sprint(i), 10*time.Second, 0))
		}
		before := l.fsm.AppliedIndex()
		l.must(t, release("holder", 1))
		for i, w := range waiters {
			who := fmt.Sprint(i)
			w.granted(t, who, uint64(i+2))
			order <- who
			l.must(t, release(who, uint64(i+2)))
		}
		if used := l.fsm.AppliedIndex() - before; used > n+n/10 { // a tick now and then
			t.Errorf("%d entries for %d handovers", used, n)
		}
	})
}

func TestTooManyWaiters(t *testing.T) {
	inLine(t, 1, func(t *testing.T, c *cluster, l *member) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		for i := range lease.MaxWaitersPerKey {
			owner := fmt.Sprint(i)
			go func() {
				_, _ = l.Wait(ctx, lease.Poll{Mutation: lease.AcquireRequest{Key: "k", Owner: owner, TTL: lineTTL, RequestID: owner}.Mutation(), Wait: 10 * time.Second})
			}()
		}
		synctest.Wait()
		got := <-l.poll("one more", 10*time.Second, 0).answer
		if exhausted, ok := errors.AsType[*lease.ExhaustedError](got.err); !ok || exhausted.Limit != lease.MaxWaitersPerKey || exhausted.Key != "k" {
			t.Errorf("%v", got.err)
		}
		cancel()
		synctest.Wait()
		another := l.poll("another", time.Second, 0)
		another.placed(t, "another", 1)
	})
}

// What those who wait add to an entry does not make it larger than one may be.
func TestAnEntryWithThoseWhoWaitIsNotTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 1)
		defer c.close()
		l := c.leader()
		const n = 300
		large := map[string]string{"v": string(make([]byte, 0, lease.MaxAttributeBytes)) + fmt.Sprintf("%04000d", 0)}
		var releases []lease.Mutation
		granted := make(chan error, n)
		for i := range n {
			key := fmt.Sprint("k", i)
			l.must(t, acquire(key, "holder", lineTTL))
			releases = append(releases, lease.ReleaseRequest{Key: key, Owner: "holder", Epoch: 1}.Mutation())
			m := lease.AcquireRequest{Key: key, Owner: "w", TTL: lineTTL, RequestID: key, Attributes: large}.Mutation()
			go func() {
				_, err := l.Wait(context.Background(), lease.Poll{Mutation: m, Wait: 10 * time.Second})
				granted <- err
			}()
		}
		synctest.Wait()
		outcomes, err := l.Propose(context.Background(), releases)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range outcomes {
			if o.Err != nil {
				t.Errorf("release %d: %v", i, o.Err)
			}
		}
		for range n {
			if err := <-granted; err != nil {
				t.Error(err)
			}
		}
	})
}
