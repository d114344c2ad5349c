package raftnet_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
)

func TestAcknowledgedGrantsSurviveTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 3)
		defer c.close()
		for round := uint64(1); round <= 5; round++ {
			l := c.leader()
			answer, err := l.do(acquire("k", fmt.Sprintf("o%d", round), time.Second))
			if err != nil || answer.Record.Epoch != round {
				t.Fatalf("round %d: epoch %d, %v", round, answer.Record.Epoch, err)
			}
			c.isolate(l)
			c.leader(l)
			time.Sleep(2 * time.Second) // of the bubble: the lease runs out
			c.heal()
			time.Sleep(2 * time.Second)
		}
	})
}

// A deposed leader whose disk hung, and whose earlier heartbeats are answered late,
// must not take those answers for a proof that it leads now.
func TestConfirmNeverServesAStaleRead(t *testing.T) {
	for i := range 60 {
		synctest.Test(t, func(t *testing.T) { staleReadRound(t, i) })
	}
}

func staleReadRound(t *testing.T, yields int) {
	c := openCluster(t, 3)
	defer c.close()
	old := c.leader()
	if _, err := old.do(acquire("k", "first", time.Second)); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second)
	resume := old.log.hang()
	hung := make(chan error, 1)
	go func() {
		_, err := old.do(acquire("other", "o", time.Second))
		hung <- err
	}()
	var back, out []link
	for _, m := range c.members {
		if m != old {
			back, out = append(back, link{m.id, old.id}), append(out, link{old.id, m.id})
		}
	}
	release := c.net.hold(back...)
	time.Sleep(250 * time.Millisecond) // heartbeats are sent and answered; the answers are held
	c.net.mu.Lock()
	for _, l := range out {
		c.net.cut[l] = true
	}
	c.net.mu.Unlock()
	if _, err := c.leader(old).do(acquire("k", "second", time.Minute)); err != nil {
		t.Fatal(err)
	}
	confirmed := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		confirmed <- old.Confirm(ctx)
	}()
	synctest.Wait()
	resume()
	for range yields {
		runtime.Gosched()
	}
	release()
	if err := <-confirmed; err == nil {
		view, err := old.fsm.Get("k")
		if err != nil || view.Record.Owner != "second" {
			t.Errorf("a confirmed read saw %q, %v", view.Record.Owner, err)
		}
	}
	c.heal()
	<-hung
}

func TestConfirm(t *testing.T) {
	for _, n := range []int{1, 3, 5} {
		synctest.Test(t, func(t *testing.T) {
			c := openCluster(t, n)
			defer c.close()
			l := c.leader()
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if err := l.Confirm(ctx); err != nil {
				t.Errorf("%d nodes: %v", n, err)
			}
			for _, m := range c.members {
				if m != l && !errors.Is(m.Confirm(ctx), lease.ErrUnavailable) {
					t.Errorf("%s does not lead and was confirmed", m.id)
				}
			}
			if n == 1 {
				return
			}
			c.isolate(l)
			if err := l.Confirm(ctx); !errors.Is(err, lease.ErrUnavailable) {
				t.Errorf("%d nodes: an isolated leader: %v", n, err)
			}
		})
	}
}

// raft leaves futures without an answer when it stops, or has no quorum: the callers
// must hear all the same, and "unknown" where it is.
func TestEveryWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 3)
		defer c.close()
		l := c.leader()
		c.isolate(l)
		began := time.Now()
		outcomes, err := l.Propose(context.Background(), []lease.Mutation{acquire("k", "o", time.Second)})
		if err != nil || !errors.Is(outcomes[0].Err, lease.ErrOutcomeUnknown) {
			t.Errorf("without a quorum: %v, %v", outcomes, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
		c.heal()
	})
}

func TestStoppingAnswersWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 3)
		l := c.leader()
		resume := l.log.hang()
		errs := make(chan error, 20)
		for i := range cap(errs) {
			go func() {
				outcomes, err := l.Propose(context.Background(), []lease.Mutation{acquire(fmt.Sprint(i), "o", time.Second)})
				if err == nil {
					err = outcomes[0].Err
				}
				errs <- err
			}()
		}
		synctest.Wait()
		closed := make(chan struct{})
		go func() {
			c.close()
			close(closed)
		}()
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, lease.ErrOutcomeUnknown) && !errors.Is(err, lease.ErrUnavailable) {
				t.Errorf("%v", err)
			}
		}
		resume()
		<-closed
	})
}

// What was not packed when its caller left is never proposed; what was is unknown.
func TestCancelledBeforeItWasPackedIsNotProposed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 3)
		defer c.close()
		l := c.leader()
		resume := l.log.hang()
		ctx, cancel := context.WithCancel(context.Background())
		errs := make(map[string]chan error)
		for i := range 10 { // one after the other: the first fill the entries in flight
			key := fmt.Sprintf("k%d", i)
			errs[key] = make(chan error, 1)
			go func() {
				outcomes, err := l.Propose(ctx, []lease.Mutation{acquire(key, "o", time.Hour)})
				if err == nil {
					err = outcomes[0].Err
				}
				errs[key] <- err
			}()
			synctest.Wait()
		}
		cancel()
		unknown, never := 0, []string{}
		for key, ch := range errs {
			switch err := <-ch; {
			case errors.Is(err, lease.ErrOutcomeUnknown):
				unknown++
			case errors.Is(err, lease.ErrUnavailable) && errors.Is(err, context.Canceled):
				never = append(never, key)
			default:
				t.Errorf("%s: %v", key, err)
			}
		}
		if unknown == 0 || len(never) == 0 {
			t.Errorf("%d unknown, %d not proposed", unknown, len(never))
		}
		resume()
		if _, err := c.leader().do(acquire("last", "o", time.Second)); err != nil {
			t.Fatal(err)
		}
		for _, key := range never {
			if view, err := c.leader().fsm.Get(key); err != nil || view.Record.Epoch != 0 {
				t.Errorf("%s was granted, %v", key, err)
			}
		}
	})
}

// A lease of 30 s that nobody renews, with the leader cut off every 10 s: it ends, but
// never early, and late by no more than what each change may cost.
func TestLeaseIsNeverShortenedByLeaderChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ttl = 30 * time.Second
		c := openCluster(t, 3)
		defer c.close()
		var began time.Time
		var lost time.Duration // time without a leader, and a tick, since the grant
		grants := 0
		for start := time.Now(); time.Since(start) < 5*time.Minute; {
			l := c.leader()
			sent := time.Now()
			answer, err := l.do(acquire("k", fmt.Sprintf("o%d", grants), ttl))
			if err == nil {
				held := time.Since(began)
				if grants > 0 && (held < ttl || held > ttl+lost+time.Second) {
					t.Errorf("epoch %d came after %v; %v were lost", answer.Record.Epoch, held, lost)
				}
				grants++
				began, lost = sent, 0
			}
			if time.Since(start).Truncate(time.Second)%(10*time.Second) == 0 {
				c.isolate(l)
				cut := time.Now()
				c.leader(l)
				lost += time.Since(cut) + time.Second // the tick's interval
				c.heal()
			}
			time.Sleep(time.Second)
		}
		if grants < 5 {
			t.Errorf("only %d grants in 5 minutes", grants)
		}
	})
}

// Between two entries no more cluster time passes than real time does, also when a new
// leader follows at once.
func TestClusterClockDoesNotRunAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 3)
		defer c.close()
		var before lease.Answer
		var sent time.Time
		for i := range 2 {
			l := c.leader()
			asked := time.Now()
			answer, err := l.do(acquire(fmt.Sprint(i), "o", time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if passed := answer.Now.Sub(before.Now); i > 0 && passed > time.Since(sent) {
				t.Errorf("cluster time went on by %v within %v", passed, time.Since(sent))
			}
			before, sent = answer, asked
			if i == 0 {
				if err := l.Close(); err != nil { // hands over
					t.Fatal(err)
				}
			}
		}
	})
}

// While leases run and nothing is asked, the leader writes its clock down: a failover
// then costs them little.
func TestIdleLeaderTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := openCluster(t, 3)
		defer c.close()
		l := c.leader()
		answer, err := l.do(acquire("k", "o", time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		const idle = 30 * time.Second
		time.Sleep(idle)
		for _, m := range c.members {
			if now, _ := m.fsm.Clock(); now.Sub(answer.Now) < idle-3*time.Second {
				t.Errorf("%s: the log's clock went on by %v in %v", m.id, now.Sub(answer.Now), idle)
			}
		}
		time.Sleep(time.Minute) // the lease is over, and nothing is left to tick for
		still, _ := l.fsm.Clock()
		time.Sleep(idle)
		if now, _ := l.fsm.Clock(); now != still {
			t.Errorf("the clock ticks by %v though no lease runs", now.Sub(still))
		}
	})
}
