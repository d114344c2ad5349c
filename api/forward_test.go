package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

func TestAFollowerPassesEverythingOn(t *testing.T) {
	leader, follower := startPair(t)
	leader.locked(func() { leader.records = []lease.Record{{Key: "k", Owner: "o", Epoch: 3, LeaseUntil: at(1_002_000)}} })
	for name, call := range calls() {
		direct, err := call(within(t), leader.leases)
		if err != nil {
			t.Fatalf("%s on the leader: %v", name, err)
		}
		passed, err := call(within(t), follower.leases)
		if err != nil {
			t.Fatalf("%s on the follower: %v", name, err)
		}
		if !proto.Equal(direct, passed) {
			t.Errorf("%s: the leader says %v, through a follower %v", name, direct, passed)
		}
		if id := passed.(interface{ GetLeader() *leasepb.Leader }).GetLeader().GetId(); id != "n1" {
			t.Errorf("%s names the leader %q", name, id)
		}
	}
	if len(follower.proposed) != 0 {
		t.Errorf("the follower proposed %v", follower.proposed)
	}
}

// calls are one call of each method.
func calls() map[string]func(context.Context, leasepb.LeaseServiceClient) (proto.Message, error) {
	k, o := []byte("k"), []byte("o")
	type client = leasepb.LeaseServiceClient
	return map[string]func(context.Context, client) (proto.Message, error){
		"Acquire": func(ctx context.Context, c client) (proto.Message, error) {
			return c.Acquire(ctx, &leasepb.AcquireRequest{Key: k, Owner: o, TtlMs: 1000, RequestId: o, Attributes: pairs(2, "n", "v")})
		},
		"Renew": func(ctx context.Context, c client) (proto.Message, error) { return c.Renew(ctx, renewal("k")) },
		"Release": func(ctx context.Context, c client) (proto.Message, error) {
			return c.Release(ctx, &leasepb.ReleaseRequest{Key: k, Owner: o, Epoch: 1})
		},
		"Forget": func(ctx context.Context, c client) (proto.Message, error) {
			return c.Forget(ctx, &leasepb.ForgetRequest{Key: k, Owner: o, Epoch: 1})
		},
		"BatchRenew": func(ctx context.Context, c client) (proto.Message, error) {
			return c.BatchRenew(ctx, &leasepb.BatchRenewRequest{Renewals: many(3)})
		},
		"Get": func(ctx context.Context, c client) (proto.Message, error) {
			return c.Get(ctx, &leasepb.GetRequest{Key: k})
		},
		"List": func(ctx context.Context, c client) (proto.Message, error) { return c.List(ctx, &leasepb.ListRequest{}) },
		"History": func(ctx context.Context, c client) (proto.Message, error) {
			return c.History(ctx, &leasepb.HistoryRequest{})
		},
	}
}

func effectOf(method string) wire.Effect {
	switch method {
	case "Get", "List", "History":
		return wire.Reads
	default:
		return wire.Mutates
	}
}

func TestARefusalComesThroughAFollowerAsItIs(t *testing.T) {
	leader, follower := startPair(t)
	held := &lease.HeldError{Record: lease.Record{Key: "k", Owner: "x", Epoch: 3, LeaseUntil: at(1_000_500), Attributes: map[string]string{"at": "h:1"}}, Remaining: 500 * time.Millisecond}
	leader.locked(func() {
		leader.propose = func(context.Context, []lease.Mutation) ([]lease.Outcome, error) {
			return []lease.Outcome{{Err: held}}, nil
		}
	})
	_, err := follower.leases.Acquire(within(t), &leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 1000})
	var got *lease.HeldError
	if !errors.As(wire.FromCall(err, wire.Mutates), &got) || got.Error() != held.Error() || got.Record.Attributes["at"] != "h:1" {
		t.Errorf("got %v, want %v", err, held)
	}
	if l := wire.LeaderOf(err); l != (api.Leader{ID: "n1", APIAddr: "n1:7201"}) {
		t.Errorf("names the leader %v", l)
	}
}

func TestWithoutALeaderNothingIsDone(t *testing.T) {
	for name, leader := range map[string]api.Leader{
		"unknown":      {},
		"out of reach": {ID: "n1", APIAddr: "n1:7201"},
	} {
		n := start(t, "n2")
		n.locked(func() { n.leader = leader })
		for method, call := range calls() {
			_, err := call(within(t), n.leases)
			t.Run(name+" "+method, func(t *testing.T) {
				wantCode(t, err, effectOf(method), lease.CodeUnavailable)
				if got := wire.LeaderOf(err); got != leader {
					t.Errorf("names the leader %v, want %v", got, leader)
				}
			})
		}
		if len(n.proposed) != 0 {
			t.Errorf("%s: proposed %v", name, n.proposed)
		}
		if leader.ID != "n1" && len(n.asked) != 0 {
			t.Errorf("%s: it was passed on to %q", name, n.asked)
		}
	}
}

// A node that has been elected opens its term for what comes, and holds that so long.
func TestAnElectedNodeHoldsWhatComes(t *testing.T) {
	n := start(t, "n2")
	n.locked(func() {
		n.leader = api.Leader{ID: "n2", APIAddr: "n2:7201"}
		open := func() { n.locked(func() { n.leads = true }) }
		n.propose = func(_ context.Context, ms []lease.Mutation) ([]lease.Outcome, error) {
			open()
			return make([]lease.Outcome, len(ms)), nil
		}
		n.confirm = func(context.Context) error { open(); return nil }
	})
	for method, call := range calls() {
		n.locked(func() { n.leads = false })
		if _, err := call(within(t), n.leases); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	if len(n.asked) != 0 {
		t.Errorf("it was passed on to %q", n.asked)
	}
}

func TestTwoNodesThatTakeEachOtherForTheLeaderDoNotLoop(t *testing.T) {
	a, b := start(t, "n1"), start(t, "n2")
	a.locked(func() { a.leader, a.peers["n2"] = api.Leader{ID: "n2"}, b.peer })
	b.locked(func() { b.leader, b.peers["n1"] = api.Leader{ID: "n1"}, a.peer })
	for method, call := range calls() {
		_, err := call(within(t), a.leases)
		wantCode(t, err, effectOf(method), lease.CodeUnavailable)
		if got := wire.LeaderOf(err); got.ID != "n1" {
			t.Errorf("%s: answered by %v and not by the node asked second", method, got)
		}
	}
}

func TestALeaderThatStepsDownHasNotDoneIt(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		n.propose = func(context.Context, []lease.Mutation) ([]lease.Outcome, error) {
			n.locked(func() { n.leads, n.leader = false, api.Leader{ID: "n2", APIAddr: "n2:7201"} })
			return nil, fmt.Errorf("no longer: %w", lease.ErrUnavailable)
		}
	})
	_, err := n.leases.Renew(within(t), renewal("k"))
	wantCode(t, err, wire.Mutates, lease.CodeUnavailable)
	if got := wire.LeaderOf(err); got.ID != "n2" {
		t.Errorf("names the leader %v, want the new one", got)
	}
}

func TestWhatWasSentAndNotHeardOfIsUnknown(t *testing.T) {
	leader, follower := startPair(t)
	reached := make(chan struct{}, 10)
	hang := func(ctx context.Context) error { reached <- struct{}{}; <-ctx.Done(); return ctx.Err() }
	leader.locked(func() {
		leader.propose = func(ctx context.Context, _ []lease.Mutation) ([]lease.Outcome, error) { return nil, hang(ctx) }
		leader.confirm = hang
	})
	for method, call := range calls() {
		want := lease.CodeOutcomeUnknown
		if effectOf(method) == wire.Reads {
			want = lease.CodeUnavailable
		}
		wantCode(t, beforeDeadline(t, method, follower, call, reached), effectOf(method), want)
	}
	go func() { <-reached; leader.peerStop() }()
	_, err := follower.leases.Renew(within(t), renewal("k"))
	wantCode(t, err, wire.Mutates, lease.CodeOutcomeUnknown)
}

// beforeDeadline has a call that hangs at the leader end at its deadline, and returns
// what the follower answered just before. On a busy machine an answer may miss the
// deadline that it was sent before, which does not matter if the next one does not.
func beforeDeadline(t *testing.T, method string, follower *running, call func(context.Context, leasepb.LeaseServiceClient) (proto.Message, error), reached <-chan struct{}) error {
	t.Helper()
	for range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err := call(ctx, follower.leases)
		inTime := ctx.Err() == nil
		cancel()
		<-reached
		if inTime {
			return err
		}
	}
	t.Fatalf("%s: ten answers came after the deadline", method)
	return nil
}

// A leader that was cut off does not hear of its end: what was passed on to it ends when
// another leads, and not only at its deadline.
func TestWhatWasPassedOnEndsWhenAnotherLeads(t *testing.T) {
	leader, follower := startPair(t)
	reached := make(chan struct{}, 1)
	hang := func(ctx context.Context) error { reached <- struct{}{}; <-ctx.Done(); return ctx.Err() }
	leader.locked(func() {
		leader.propose = func(ctx context.Context, _ []lease.Mutation) ([]lease.Outcome, error) { return nil, hang(ctx) }
		leader.confirm = hang
	})
	for method, call := range calls() {
		follower.locked(func() { follower.leader = api.Leader{ID: "n1", APIAddr: "n1:7201"} })
		go func() {
			<-reached
			follower.locked(func() { follower.leader = api.Leader{ID: "n3", APIAddr: "n3:7201"} })
		}()
		began := time.Now()
		_, err := call(within(t), follower.leases)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s ended after %v", method, took)
		}
		want := lease.CodeOutcomeUnknown
		if effectOf(method) == wire.Reads {
			want = lease.CodeUnavailable
		}
		wantCode(t, err, effectOf(method), want)
		if got := wire.LeaderOf(err); got.ID != "n3" {
			t.Errorf("%s names the leader %v", method, got)
		}
	}
}

func TestWhatCouldNotBeSentIsNotDone(t *testing.T) {
	n := start(t, "n2")
	n.locked(func() { n.leader, n.peers["n1"] = api.Leader{ID: "n1"}, connect(t, "127.0.0.1:1") })
	_, err := n.leases.Renew(within(t), renewal("k"))
	wantCode(t, err, wire.Mutates, lease.CodeUnavailable)
}

func TestAFailureThatExplainsNothingIsTakenForTheWorst(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		n.propose = func(context.Context, []lease.Mutation) ([]lease.Outcome, error) { return nil, errors.New("a bug") }
		n.confirm = func(context.Context) error { return errors.New("a bug") }
	})
	_, err := n.leases.Renew(within(t), renewal("k"))
	wantCode(t, err, wire.Mutates, lease.CodeOutcomeUnknown)
	_, err = n.leases.Get(within(t), &leasepb.GetRequest{Key: []byte("k")})
	wantCode(t, err, wire.Reads, lease.CodeUnavailable)
	n.locked(func() {
		n.propose = func(context.Context, []lease.Mutation) ([]lease.Outcome, error) { return nil, nil }
	})
	_, err = n.leases.Renew(within(t), renewal("k"))
	wantCode(t, err, wire.Mutates, lease.CodeOutcomeUnknown)
}

func TestABatchHasAResultForEachRenewal(t *testing.T) {
	leader, follower := startPair(t)
	leader.locked(func() {
		leader.propose = func(_ context.Context, ms []lease.Mutation) ([]lease.Outcome, error) {
			outcomes := make([]lease.Outcome, len(ms))
			for i, m := range ms {
				switch m.Key {
				case "lost":
					outcomes[i].Err = &lease.LostError{Record: lease.Record{Key: m.Key, Owner: "x", Epoch: 9}}
				case "unknown":
					outcomes[i].Err = lease.ErrOutcomeUnknown
				case "unavailable":
					outcomes[i].Err = lease.ErrUnavailable
				default:
					outcomes[i].Answer = lease.Answer{Record: lease.Record{Key: m.Key, Epoch: 1}, Remaining: m.TTL}
				}
			}
			return outcomes, nil
		}
	})
	invalid := renewal("bad")
	invalid.TtlMs = 1
	req := &leasepb.BatchRenewRequest{Renewals: []*leasepb.RenewRequest{renewal("a"), invalid, renewal("lost"), renewal("unknown"), renewal("unavailable"), renewal("b")}}
	for _, client := range []leasepb.LeaseServiceClient{leader.leases, follower.leases} {
		resp, err := client.BatchRenew(within(t), req)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range resp.GetResults() {
			if f := r.GetFailure(); f != nil {
				got = append(got, string(lease.CodeOf(wire.FailureFromProto(f, wire.Mutates))))
				continue
			}
			got = append(got, string(r.GetAnswer().GetRecord().GetKey()))
		}
		if want := "[a INVALID LEASE_LOST OUTCOME_UNKNOWN UNAVAILABLE b]"; fmt.Sprint(got) != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}
	if n := len(leader.proposed); n != 10 {
		t.Errorf("%d renewals were proposed in two calls, want 5 each", n)
	}
}
