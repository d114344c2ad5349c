package sim

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasenode/leasenode/api/leasepb"
	apiwire "github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/lease"
)

// release gives epoch of key back in the background, as whoever was granted it first.
func (s *stage) release(i int, key, owner string, epoch uint64) {
	s.joined.Go(func() {
		ctx, cancel := within(5 * time.Second)
		defer cancel()
		_, _ = s.direct[i].Release(ctx, lease.ReleaseRequest{Key: key, Owner: owner, Epoch: epoch})
	})
	time.Sleep(20 * time.Millisecond) // it is in the leader's log
}

// A key is handed over to who waits, in an entry that the leader's disk takes long to write: meanwhile two more
// polls have come. The lease is counted from the sending of the poll that the entry has.
func TestAHandOverThatTakesLong(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		// Polls are sent 375 ms apart, and a lease of 2 s is fenced 400 ms before its end.
		const ttl, hold = 2 * time.Second, time.Second
		leader := s.leader()
		h, shut := s.holder(0, ttl)
		defer shut()
		ctx, cancel := within(time.Minute)
		defer cancel()
		if _, err := h.Acquire(ctx, "warm"); err != nil { // connects to the leader
			s.t.Fatal(err)
		}
		before := s.granted(leader, "k", "before", time.Minute)
		got := make(chan *holder.Lease, 1)
		s.joined.Go(func() {
			l, err := h.Await(ctx, "k")
			if err != nil {
				s.t.Errorf("wait: %v", err)
			}
			got <- l
		})
		time.Sleep(time.Second)
		s.disk(leader, nemesis.DiskHanging)
		s.release(leader, "k", "before", before.Record.Epoch)
		time.Sleep(hold)
		s.disk(leader, nemesis.DiskHealthy)
		first := <-got
		if first == nil {
			return
		}
		s.toHolder(0, nemesis.LinkState{Cut: true})
		s.fromHolder(0, nemesis.LinkState{Cut: true})
		if now, ok := s.Leader(ctx); !ok || now != leader || first.Epoch() != before.Record.Epoch+1 {
			s.t.Fatalf("leader %d was deposed (%d, %v), or the key not handed over: epoch %d", leader, now, ok, first.Epoch())
		}
		s.next("k", first, ttl)
	})
}

// Who calls again under the same request id after a call that was broken off while its
// grant was on its way is told of that grant: it must not be given back then.
func TestAGrantThatALaterPollIsToldOf(t *testing.T) {
	grantTwice(t, func(ctx context.Context, c leasepb.LeaseServiceClient, p lease.Poll) (*leasepb.AcquireResponse, error) {
		return c.Acquire(ctx, pollToProto(p))
	})
}

// The same with a call that does not wait.
func TestAGrantThatAnAcquireIsToldOf(t *testing.T) {
	grantTwice(t, func(ctx context.Context, c leasepb.LeaseServiceClient, p lease.Poll) (*leasepb.AcquireResponse, error) {
		p.Wait = 0
		return c.Acquire(ctx, pollToProto(p))
	})
}

func pollToProto(p lease.Poll) *leasepb.AcquireRequest {
	req, err := apiwire.PollToProto(p)
	if err != nil {
		panic(err)
	}
	return req
}

// service returns node i's, for calls that no client of ours would make, and what closes
// the connection.
func (s *stage) service(i int) (c leasepb.LeaseServiceClient, shut func()) {
	s.t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+apiAddr(i), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(s.dialFrom(outside)))
	if err != nil {
		s.t.Fatal(err)
	}
	return leasepb.NewLeaseServiceClient(conn), func() { _ = conn.Close() }
}

// grantTwice has a poll broken off while the entry that grants it is on its way, and
// again call before that entry is committed. Nobody else may get the key for as long as
// the answer to that says.
func grantTwice(t *testing.T, again func(context.Context, leasepb.LeaseServiceClient, lease.Poll) (*leasepb.AcquireResponse, error)) {
	play(t, 3, nil, func(s *stage) {
		leader := s.leader()
		client, shut := s.service(leader)
		defer shut()
		before := s.granted(leader, "k", "before", time.Minute)
		const ttl = 2 * time.Second
		poll := lease.Poll{
			Mutation: lease.Mutation{Op: lease.OpAcquire, Key: "k", Owner: "waits", TTL: ttl, RequestID: "one"},
			Wait:     lease.LongestPoll(ttl),
		}
		ctx, breakOff := within(time.Minute)
		s.joined.Go(func() { _, _ = client.Acquire(ctx, pollToProto(poll)) })
		time.Sleep(50 * time.Millisecond)
		s.oneWay(leader, away, nemesis.LinkState{Cut: true})
		s.release(leader, "k", "before", before.Record.Epoch)
		breakOff()
		time.Sleep(20 * time.Millisecond) // the leader hears of it
		sent := time.Now()
		mend := time.AfterFunc(100*time.Millisecond, func() { s.oneWay(leader, away, nemesis.LinkState{}) })
		defer mend.Stop()
		ctx, cancel := within(5 * time.Second)
		defer cancel()
		resp, err := again(ctx, client, poll)
		if err != nil {
			s.t.Fatal(err)
		}
		answer, err := apiwire.AnswerFromProto(resp.GetAnswer())
		if err != nil || answer.Record.Epoch != before.Record.Epoch+1 {
			s.t.Fatalf("%+v, %v", answer, err)
		}
		until := sent.Add(answer.Remaining - ttl/20)
		for time.Now().Before(until) {
			if thief, err := s.acquire(leader, "k", "thief", ttl); err == nil {
				s.caught("exclusion", "epochs %d and %d are both held, the first for another %v", answer.Record.Epoch, thief.Record.Epoch, time.Until(until))
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}
