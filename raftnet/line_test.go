package raftnet_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
)

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
