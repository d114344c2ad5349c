package api_test

import (
	"context"
	"testing"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// A poll that waits, and a release to somebody, go to the leader as what they are.
func TestWaitsArePassedOn(t *testing.T) {
	leader, follower := startPair(t)
	var polls []lease.Poll
	var to []string
	leader.locked(func() {
		leader.wait = func(_ context.Context, p lease.Poll) (lease.Answer, error) {
			polls = append(polls, p)
			return lease.Answer{}, &lease.HeldError{Record: lease.Record{Key: "k", Owner: "first", Epoch: 3}, Remaining: time.Second, Place: 7}
		}
		leader.handOver = func(_ context.Context, m lease.Mutation, owner string) (lease.Answer, error) {
			to = append(to, owner)
			return lease.Answer{Record: lease.Record{Key: m.Key, Owner: m.Owner, Epoch: m.Epoch}, Changed: true}, nil
		}
	})
	for _, n := range []*running{leader, follower} {
		_, err := n.leases.Acquire(within(t), &leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 4000, RequestId: []byte("r"), WaitMs: 900, WaitedMs: 100})
		held, ok := wire.FromCall(err, wire.Mutates).(*lease.HeldError)
		if !ok || held.Place != 7 || held.Record.Owner != "first" {
			t.Errorf("%s: %v", n.id, err)
		}
		if _, err := n.leases.Release(within(t), &leasepb.ReleaseRequest{Key: []byte("k"), Owner: []byte("o"), Epoch: 3, To: []byte("next")}); err != nil {
			t.Errorf("%s: %v", n.id, err)
		}
	}
	if len(polls) != 2 || polls[1].Wait != 900*time.Millisecond || polls[1].Waited != 100*time.Millisecond || polls[1].Mutation.RequestID != "r" {
		t.Errorf("%+v", polls)
	}
	if len(to) != 2 || to[1] != "next" {
		t.Errorf("%q", to)
	}
	refusal := lease.NotWaitingError{Key: "k", Owner: "next"}
	leader.locked(func() {
		leader.handOver = func(context.Context, lease.Mutation, string) (lease.Answer, error) { return lease.Answer{}, &refusal }
	})
	for _, n := range []*running{leader, follower} {
		_, err := n.leases.Release(within(t), &leasepb.ReleaseRequest{Key: []byte("k"), Owner: []byte("o"), Epoch: 3, To: []byte("next")})
		if got, ok := wire.FromCall(err, wire.Mutates).(*lease.NotWaitingError); !ok || *got != refusal {
			t.Errorf("%s: %v", n.id, err)
		}
	}
}
