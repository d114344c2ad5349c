package workload_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// holdersFor has three holders contend for a key for two minutes of the bubble's time.
func holdersFor(t *testing.T, store func(lease.Store) lease.Store, seed uint64) history.Run {
	recorder := history.NewRecorder(nil)
	now := sinceNow()
	ledger, resource := workload.NewLedger(0, recorder), workload.NewMemoryResource(now)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	memory := leasetest.NewMemory(lease.NewSystemClock())
	var all sync.WaitGroup
	for n := range 3 {
		name := fmt.Sprintf("h%d", n+1)
		all.Go(func() {
			err := workload.Hold(ctx, workload.HoldOptions{
				Seed: seed + uint64(n), Name: name, Key: "a key", TTL: time.Second, Store: store(memory),
				Clock: lease.NewSystemClock(), Now: now, Resource: resource, Sink: ledger.Of(name),
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ledger.Close()
	return recorder.Run()
}

// overlap returns how long two different grants were believed in at once.
func overlap(beliefs []history.Belief) (worst time.Duration) {
	for i, a := range beliefs {
		for _, b := range beliefs[:i] {
			if a.Epoch != b.Epoch || a.Holder != b.Holder {
				worst = max(worst, min(a.Until, b.Until)-max(a.From, b.From))
			}
		}
	}
	return worst
}

func TestHoldersOfAGoodStoreExcludeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := holdersFor(t, func(s lease.Store) lease.Store { return s }, 1)
		if worst := overlap(run.Beliefs); worst > 0 {
			t.Errorf("two believed for %v", worst)
		}
		holders := map[string]int{}
		var believed time.Duration
		for _, b := range run.Beliefs {
			holders[b.Holder]++
			believed += b.Until - b.From
		}
		refused := 0
		for _, w := range run.Writes {
			if !w.Accepted {
				refused++
			}
		}
		if len(holders) != 3 || len(run.Beliefs) < 20 || believed < 30*time.Second || len(run.Writes) < 200 || refused == 0 {
			t.Errorf("%v; %d beliefs, of %v in all; %d writes, %d refused", holders, len(run.Beliefs), believed, len(run.Writes), refused)
		}
	})
}

func TestHoldersOfABrokenStoreShowIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := holdersFor(t, func(s lease.Store) lease.Store { return leasetest.EvictsHolder{Store: s} }, 1)
		if overlap(run.Beliefs) < 50*time.Millisecond {
			t.Errorf("the worst overlap is %v", overlap(run.Beliefs))
		}
	})
}

// Late writes are there, so that the resource has something to refuse.
func TestTheResourceDecidesInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		writes := holdersFor(t, func(s lease.Store) lease.Store { return s }, 7).Writes
		slices.SortFunc(writes, func(a, b history.Write) int { return a.Seq - b.Seq })
		var highest uint64
		for i, w := range writes {
			if w.Seq != i+1 || w.Accepted != (w.Token >= highest) {
				t.Fatalf("write %d: %+v, after %d", i+1, w, highest)
			}
			highest = max(highest, w.Token)
		}
	})
}

// cautious fails the test if a holder is certain for longer than a lease can be used.
type cautious struct {
	workload.HoldSink
	t   *testing.T
	now func() time.Duration
}

func (c cautious) Held(g workload.Grant, span workload.Span) {
	if now := c.now(); span.From > now || span.From < now-time.Millisecond || span.Until > now+800*time.Millisecond || span.Until <= span.From {
		c.t.Errorf("at %v: certain from %v until %v", now, span.From, span.Until)
	}
	c.HoldSink.Held(g, span)
}

func TestAHolderIsCertainUntilItsDeadlineOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := sinceNow()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ledger := workload.NewLedger(0, history.NewRecorder(nil))
		err := workload.Hold(ctx, workload.HoldOptions{
			Name: "h", Key: "k", TTL: time.Second, Store: leasetest.NewMemory(lease.NewSystemClock()), Clock: lease.NewSystemClock(),
			Now: now, Resource: workload.NewMemoryResource(now), Sink: cautious{ledger.Of("h"), t, now},
		})
		if err != nil || ledger.Grants() < 5 {
			t.Errorf("%v; %d grants", err, ledger.Grants())
		}
	})
}

func TestAHolderThatCannotBeIsAnError(t *testing.T) {
	err := workload.Hold(t.Context(), workload.HoldOptions{Name: " ", Key: "k", TTL: time.Second})
	if err == nil {
		t.Error("a blank owner is no error")
	}
}
