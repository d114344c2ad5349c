package model_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/history/historytest"
	"github.com/leasenode/leasenode/jepsen-like/model"
	"github.com/leasenode/leasenode/lease"
)

func setup(seed uint64, tries int) historytest.Setup {
	return historytest.Setup{Seed: seed, Clients: 5 + int(seed%6), Keys: []string{"k"}, Length: 60 * time.Second, Loss: 15, Tries: tries}
}

func TestWhatAStoreInMemoryAnswersIsRight(t *testing.T) {
	for _, tries := range []int{0, 1} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("tries %d seed %d", tries, seed), func(t *testing.T) {
				t.Parallel()
				run := historytest.Make(setup(seed, tries))
				r := model.Check("k", run.Ops, model.Options{Timeout: time.Minute, RememberedGrants: 16})
				t.Logf("%d operations, %d judged, %d possible: %v in %v", len(run.Ops), r.Judged, r.Possible, r.Answer, r.Took)
				if r.Answer != porcupine.Ok {
					t.Errorf("%v after %s; no place for", r.Answer, r.After)
					for _, op := range r.Stuck[:min(3, len(r.Stuck))] {
						t.Log(model.Describe(op))
					}
				}
			})
		}
	}
}

// A search that is not done in time has found nothing, and stops.
func TestTheSearchIsBounded(t *testing.T) {
	run := historytest.Make(setup(5, 1))
	r := model.Check("k", run.Ops, model.Options{Timeout: time.Nanosecond})
	if r.Answer != porcupine.Unknown {
		t.Errorf("the answer is %v, want Unknown", r.Answer)
	}
}

func TestWhatHasNoPlaceIsTold(t *testing.T) {
	record := lease.Record{Key: "k", Owner: "a", Epoch: 1, LeaseUntil: lease.InstantOfMillis(1005)}
	ops := []history.Op{
		{ID: 1, Client: "a", Kind: history.Acquire, Key: "k", Owner: "a", TTL: time.Second, RequestID: "r", Tries: 1, Call: 0, Return: 1, Outcome: history.OK, Record: record, Now: lease.InstantOfMillis(5), Remaining: time.Second, Changed: true},
		{ID: 2, Client: "b", Kind: history.Get, Key: "k", Call: 2, Return: 3, Outcome: history.OK, Record: lease.Record{Key: "k"}, Now: lease.InstantOfMillis(6)},
	}
	r := model.Check("k", ops, model.Options{})
	if r.Answer != porcupine.Illegal || len(r.Stuck) != 1 || r.Stuck[0].ID != 2 {
		t.Fatalf("%v, stuck %v; want Illegal and operation 2", r.Answer, r.Stuck)
	}
	if want := `epoch 1 of "a", ends at 1005 ms`; !strings.Contains(r.After, want) {
		t.Errorf("the key is left at %s, want %s", r.After, want)
	}
	if got, want := model.Describe(r.Stuck[0]), `#2 get() by b: ok, never granted, clock 6 ms`; got != want {
		t.Errorf("described as %s, want %s", got, want)
	}
}

func TestSplitSortsEachKeyByCalls(t *testing.T) {
	keys := model.Split([]history.Op{{ID: 1, Key: "a", Call: 2}, {ID: 2, Key: "b", Call: 3}, {ID: 3, Key: "a", Call: 1}})
	if len(keys) != 2 || len(keys["a"]) != 2 || keys["a"][0].ID != 3 || keys["b"][0].ID != 2 {
		t.Errorf("split into %v", keys)
	}
}

// BenchmarkCheck is a minute of ten clients on one key, a seventh of their operations
// lost.
func BenchmarkCheck(b *testing.B) {
	for _, tries := range []int{0, 1} {
		s := setup(5, tries)
		s.Length = 90 * time.Second
		run := historytest.Make(s)
		b.Run(fmt.Sprintf("tries=%d/ops=%d", tries, len(run.Ops)), func(b *testing.B) {
			for b.Loop() {
				if r := model.Check("k", run.Ops, model.Options{RememberedGrants: 16}); r.Answer != porcupine.Ok {
					b.Fatal(r.Answer)
				}
			}
		})
	}
}
