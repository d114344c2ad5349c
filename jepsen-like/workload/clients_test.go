package workload_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/workload"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// clientsFor runs clients against store for a while of the bubble's time.
func clientsFor(t *testing.T, store workload.Store, seed uint64) []history.Op {
	recorder := history.NewRecorder(nil)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	workload.Clients(ctx, workload.ClientOptions{
		Seed: seed, Clients: 4, Keys: 3, Prefix: "p/", Now: sinceNow(), Rotate: 10 * time.Second, Sink: recorder,
		Endpoints: []workload.Endpoint{{Node: "n1", Store: store}, {Node: "n2", Store: store}},
	})
	return recorder.Run().Ops
}

func TestClientsAskForEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := clientsFor(t, leasetest.NewMemory(lease.NewSystemClock()), 1)
		seen := map[string]int{}
		for _, op := range ops {
			if op.ID == 0 || op.Tries != 1 || op.Return < op.Call || op.Node == "" || op.Outcome == history.Unknown {
				t.Fatalf("%+v", op)
			}
			seen[fmt.Sprint(op.Kind, " ", op.Outcome)]++
			if op.Kind == history.Acquire && op.Outcome == history.OK && !op.Changed {
				seen["asked again"]++
			}
			if op.Kind == history.Acquire && (op.RequestID == "" || op.TTL < 300*time.Millisecond || op.TTL > 5*time.Second) {
				t.Fatalf("%+v", op)
			}
			if op.Owner != "" && op.Owner != op.Client {
				seen["for another"]++
			}
		}
		for _, want := range []string{
			"acquire ok", "acquire held", "acquire lost", "renew ok", "renew lost", "release ok", "release lost",
			"forget ok", "forget lost", "get ok", "get-stale ok", "asked again", "for another",
		} {
			if seen[want] == 0 {
				t.Errorf("of %d operations none is %q: %v", len(ops), want, seen)
			}
		}
	})
}

// What is asked for does not depend on what else goes on.
func TestOperationsComeFromTheSeed(t *testing.T) {
	asked := func(seed uint64) (keys map[string][]string) {
		keys = map[string][]string{}
		synctest.Test(t, func(t *testing.T) {
			for _, op := range clientsFor(t, leasetest.NewMemory(lease.NewSystemClock()), seed) {
				keys[op.Client] = append(keys[op.Client], fmt.Sprint(op.Kind, op.Key, op.Owner, op.Node, op.TTL > 0))
			}
		})
		return keys
	}
	first := asked(5)
	if !reflect.DeepEqual(first, asked(5)) {
		t.Error("the same seed asks for something else")
	}
	if reflect.DeepEqual(first, asked(6)) {
		t.Error("another seed asks for the same")
	}
}

// shaky answers some calls with an error, though it may have done what was asked.
type shaky struct {
	workload.Store
	mu    sync.Mutex
	calls int
}

func (s *shaky) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	s.mu.Lock()
	s.calls++
	n := s.calls
	s.mu.Unlock()
	answer, err := s.Store.Acquire(ctx, req)
	if n%3 == 0 {
		return lease.Answer{}, fmt.Errorf("gone: %w", lease.ErrOutcomeUnknown)
	}
	return answer, err
}

func TestWhatMayHaveBeenDoneIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ops := clientsFor(t, &shaky{Store: leasetest.NewMemory(lease.NewSystemClock())}, 2)
		unknown, again := map[string]bool{}, 0
		for _, op := range ops {
			if op.Outcome == history.Unknown {
				unknown[op.RequestID] = true
			} else if unknown[op.RequestID] && op.Kind == history.Acquire {
				again++
			}
		}
		if len(unknown) < 10 || again < 5 {
			t.Errorf("%d unknown outcomes, %d asked again", len(unknown), again)
		}
	})
}

// failing answers everything with err.
type failing struct{ err error }

func (f failing) Acquire(context.Context, lease.AcquireRequest) (lease.Answer, error) {
	return lease.Answer{}, f.err
}

func (f failing) Renew(context.Context, lease.RenewRequest) (lease.Answer, error) {
	return lease.Answer{}, f.err
}

func (f failing) Release(context.Context, lease.ReleaseRequest) (lease.Answer, error) {
	return lease.Answer{}, f.err
}

func (f failing) Forget(context.Context, lease.ForgetRequest) (lease.Answer, error) {
	return lease.Answer{}, f.err
}

func (f failing) Get(context.Context, lease.GetRequest) (lease.Answer, error) {
	return lease.Answer{}, f.err
}

func TestOutcomes(t *testing.T) {
	record := lease.Record{Key: "k", Owner: "o", Epoch: 3}
	for _, c := range []struct {
		err  error
		want history.Outcome
	}{
		{&lease.HeldError{Record: record, Remaining: time.Second}, history.Held},
		{fmt.Errorf("at n1: %w", &lease.LostError{Record: record, Remaining: time.Second}), history.Lost},
		{&lease.InvalidError{}, history.Invalid},
		{&lease.ExhaustedError{}, history.Exhausted},
		{lease.ErrUnavailable, history.Unavailable},
		{lease.ErrOutcomeUnknown, history.Unknown},
		{errors.New("something else"), history.Unknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			for _, op := range clientsFor(t, failing{c.err}, 3) {
				want := c.want
				if op.Kind == history.Get || op.Kind == history.GetStale {
					want = history.Unavailable
				}
				tells := want == history.Held || want == history.Lost
				if op.Outcome != want || op.Error == "" || tells != (op.Record.Epoch == 3 && op.Remaining == time.Second) {
					t.Fatalf("%v: %+v", c.err, op)
				}
			}
		})
	}
}

// slow takes its time, and says whether its context was ended.
type slow struct{ workload.Store }

func (s slow) Get(ctx context.Context, _ lease.GetRequest) (lease.Answer, error) {
	select {
	case <-time.After(700 * time.Millisecond):
		return lease.Answer{}, nil
	case <-ctx.Done():
		return lease.Answer{}, lease.ErrUnavailable
	}
}

// An operation that is out at the end is waited for: its outcome is known.
func TestTheEndWaitsForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, op := range clientsFor(t, slow{leasetest.NewMemory(lease.NewSystemClock())}, 4) {
			if op.Outcome == history.Unavailable {
				t.Fatalf("%+v", op)
			}
		}
	})
}

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := history.NewRecorder(nil)
		memory := leasetest.NewMemory(lease.NewSystemClock())
		now := sinceNow()
		time.Sleep(time.Second)
		workload.Probe(t.Context(), workload.ProbeOptions{
			Endpoints: []workload.Endpoint{{Node: "n1", Store: memory}, {Node: "n2", Store: failing{lease.ErrUnavailable}}},
			Prefix:    "probe/", Now: now, Healed: time.Second, Bound: 5 * time.Second, Sink: recorder,
		})
		run := recorder.Run()
		want := []history.Recovery{{Node: "n1", Healed: time.Second, Served: time.Second}, {Node: "n2", Healed: time.Second, Served: -1}}
		if !reflect.DeepEqual(run.Recoveries, want) {
			t.Errorf("%+v, want %+v", run.Recoveries, want)
		}
		if took := now(); took < 6*time.Second || took > 7*time.Second {
			t.Errorf("it took until %v", took)
		}
	})
}

// A node that reads and cannot write does not serve.
func TestAProbeWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := history.NewRecorder(nil)
		memory := leasetest.NewMemory(lease.NewSystemClock())
		workload.Probe(t.Context(), workload.ProbeOptions{
			Endpoints: []workload.Endpoint{{Node: "n1", Store: readOnly{failing{lease.ErrUnavailable}, memory}}},
			Now:       sinceNow(), Bound: time.Second, Sink: recorder,
		})
		if run := recorder.Run(); len(run.Recoveries) != 1 || run.Recoveries[0].Served >= 0 {
			t.Errorf("%+v", run.Recoveries)
		}
	})
}

type readOnly struct {
	failing
	reads workload.Store
}

func (r readOnly) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	return r.reads.Get(ctx, req)
}

func TestDirectMakesOneTry(t *testing.T) {
	store, err := workload.NewDirect("127.0.0.1:1", nil) // where nobody listens
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	began := time.Now()
	if _, err := store.Acquire(ctx, lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Second}); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if _, err := store.Get(ctx, lease.GetRequest{Key: "k"}); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it tried for %v", took)
	}
	if _, err := store.Renew(ctx, lease.RenewRequest{TTL: time.Nanosecond}); !errors.As(err, new(*lease.InvalidError)) {
		t.Errorf("%v", err)
	}
}
