package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// TestABundledCallIsAnsweredAsAPlainOne does every method both ways, with every outcome, at
// the leader and through a follower.
func TestABundledCallIsAnsweredAsAPlainOne(t *testing.T) {
	leader, follower := startPair(t)
	record := lease.Record{Key: "k", Owner: "o", Epoch: 3, LeaseUntil: lease.InstantOfMillis(2_000_000), Attributes: map[string]string{"a": "b"}}
	leader.locked(func() { leader.records = []lease.Record{record} })
	for name, failure := range map[string]error{
		"done":      nil,
		"held":      &lease.HeldError{Record: record, Remaining: time.Second},
		"lost":      &lease.LostError{Record: record},
		"exhausted": &lease.ExhaustedError{Resource: "keys", Limit: 7, Key: "k"},
		"not done":  fmt.Errorf("later: %w", lease.ErrUnavailable),
		"unknown":   fmt.Errorf("lost: %w", lease.ErrOutcomeUnknown),
		"a bug":     errors.New("no code"),
	} {
		leader.locked(func() { leader.propose = nil })
		if failure != nil {
			leader.locked(func() {
				leader.propose = func(context.Context, []lease.Mutation) ([]lease.Outcome, error) {
					return []lease.Outcome{{Err: failure}}, nil
				}
			})
		}
		for _, n := range []*running{leader, follower} {
			plain := leasepb.NewLeaseServiceClient(n.public)
			for method, call := range eachMethod() {
				got, gotErr := call(within(t), n.leases)
				want, wantErr := call(within(t), plain)
				if !proto.Equal(got, want) || !sameFailure(gotErr, wantErr) {
					t.Errorf("%s, %s at %s: in a bundle\n%v %v\nplain\n%v %v", name, method, n.id, got, gotErr, want, wantErr)
				}
			}
		}
	}
}

// sameFailure compares statuses with their details, which are bytes in them, in which the
// order of a map is anyone's guess.
func sameFailure(a, b error) bool {
	x, y := status.Convert(a), status.Convert(b)
	return x.Code() == y.Code() && x.Message() == y.Message() && slices.EqualFunc(x.Details(), y.Details(), func(a, b any) bool {
		return proto.Equal(a.(proto.Message), b.(proto.Message))
	})
}

// eachMethod are calls of the methods that can be bundled, one of them invalid.
func eachMethod() map[string]func(context.Context, leasepb.LeaseServiceClient) (proto.Message, error) {
	key := []byte("k")
	return map[string]func(context.Context, leasepb.LeaseServiceClient) (proto.Message, error){
		"acquire": func(ctx context.Context, c leasepb.LeaseServiceClient) (proto.Message, error) {
			return c.Acquire(ctx, &leasepb.AcquireRequest{Key: key, Owner: key, TtlMs: 1000})
		},
		"renew": func(ctx context.Context, c leasepb.LeaseServiceClient) (proto.Message, error) {
			return c.Renew(ctx, &leasepb.RenewRequest{Key: key, Owner: key, Epoch: 1, TtlMs: 1000})
		},
		"release": func(ctx context.Context, c leasepb.LeaseServiceClient) (proto.Message, error) {
			return c.Release(ctx, &leasepb.ReleaseRequest{Key: key, Owner: key, Epoch: 1})
		},
		"forget": func(ctx context.Context, c leasepb.LeaseServiceClient) (proto.Message, error) {
			return c.Forget(ctx, &leasepb.ForgetRequest{Key: key, Owner: key, Epoch: 1})
		},
		"get": func(ctx context.Context, c leasepb.LeaseServiceClient) (proto.Message, error) {
			return c.Get(ctx, &leasepb.GetRequest{Key: key})
		},
		"invalid": func(ctx context.Context, c leasepb.LeaseServiceClient) (proto.Message, error) {
			return c.Renew(ctx, &leasepb.RenewRequest{Key: key, Owner: key, TtlMs: 1000})
		},
	}
}

// openBundle opens a stream to n that ends with the test.
func openBundle(t *testing.T, n *running) leasepb.BundleService_BundleClient {
	t.Helper()
	stream, err := leasepb.NewBundleServiceClient(n.public).Bundle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// exchange sends calls and returns the reply to the first of them.
func exchange(t *testing.T, stream leasepb.BundleService_BundleClient, calls ...*leasepb.Call) *leasepb.Reply {
	t.Helper()
	if err := stream.Send(&leasepb.Calls{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	for {
		replies, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		for _, reply := range replies.GetReplies() {
			if reply.GetId() == calls[0].GetId() {
				return reply
			}
		}
	}
}

func wantReplyInvalid(t *testing.T, reply *leasepb.Reply, field string) {
	t.Helper()
	var failed spb.Status
	if err := proto.Unmarshal(reply.GetStatus(), &failed); err != nil {
		t.Fatal(err)
	}
	wantInvalid(t, status.ErrorProto(&failed), field)
}

func encoded(t *testing.T, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func encodedRenewal(t *testing.T) []byte {
	return encoded(t, &leasepb.RenewRequest{Key: []byte("k"), Owner: []byte("o"), Epoch: 1, TtlMs: 1000})
}

// TestACallThatMakesNoSenseIsRefusedAlone sends what no client of ours would, on one stream
// that goes on.
func TestACallThatMakesNoSenseIsRefusedAlone(t *testing.T) {
	n := startLeader(t)
	stream := openBundle(t, n)
	wantReplyInvalid(t, exchange(t, stream, &leasepb.Call{Id: 1, Method: leasepb.Method_METHOD_RENEW, Request: []byte{0xff}}), "request")
	wantReplyInvalid(t, exchange(t, stream, &leasepb.Call{Id: 2, Method: 99}), "method")
	wantReplyInvalid(t, exchange(t, stream, &leasepb.Call{Id: 3}), "method")
	wantReplyInvalid(t, exchange(t, stream, &leasepb.Call{Id: 5, Method: leasepb.Method_METHOD_RENEW, Request: encoded(t, &leasepb.RenewRequest{Owner: make([]byte, 16<<10)})}), "request")
	wait := encoded(t, &leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 1000, RequestId: []byte("r"), WaitMs: 100})
	wantReplyInvalid(t, exchange(t, stream, &leasepb.Call{Id: 6, Method: leasepb.Method_METHOD_ACQUIRE, Request: wait}), "wait")
	if n := counted(t, n, "LeaseService/Acquire", "INVALID"); n != 1 {
		t.Errorf("what was refused was counted %v times", n)
	}
	for _, ms := range []int64{0, -1, 1 << 62} {
		reply := exchange(t, stream, &leasepb.Call{Id: 4, Method: leasepb.Method_METHOD_RENEW, TimeoutMs: ms, Request: encodedRenewal(t)}, &leasepb.Call{Id: 77, Cancel: true})
		if len(reply.GetStatus()) > 0 || len(reply.GetResponse()) == 0 {
			t.Errorf("with a time of %d ms: %v", ms, reply)
		}
	}
}

// TestAPanicIsTheFailureOfOneCall leaves the others of its stream alone.
func TestAPanicIsTheFailureOfOneCall(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		n.propose = func(_ context.Context, ms []lease.Mutation) ([]lease.Outcome, error) {
			if ms[0].Key == "panics" {
				panic("a bug")
			}
			return make([]lease.Outcome, len(ms)), nil
		}
	})
	stream := openBundle(t, n)
	renewing := func(id uint64, key string) *leasepb.Call {
		return &leasepb.Call{Id: id, Method: leasepb.Method_METHOD_RENEW, Request: encoded(t, renewal(key))}
	}
	var failed spb.Status
	if err := proto.Unmarshal(exchange(t, stream, renewing(1, "panics"), renewing(2, "k")).GetStatus(), &failed); err != nil || codes.Code(failed.GetCode()) != codes.Internal {
		t.Errorf("got %v, %v", &failed, err)
	}
	if reply := exchange(t, stream, renewing(3, "k")); len(reply.GetStatus()) > 0 || len(reply.GetResponse()) == 0 {
		t.Errorf("after it: %v", reply)
	}
}

// holding has n hold the calls that come until their contexts end or the test lets one go.
type holding struct {
	begun, ended chan struct{}
	let          chan struct{}
	left         func() time.Duration // of the call that began last
}

func hold(n *running) *holding {
	h := &holding{begun: make(chan struct{}, 5000), ended: make(chan struct{}, 5000), let: make(chan struct{})}
	var mu sync.Mutex
	var left time.Duration
	h.left = func() time.Duration { mu.Lock(); defer mu.Unlock(); return left }
	n.locked(func() {
		n.propose = func(ctx context.Context, ms []lease.Mutation) ([]lease.Outcome, error) {
			deadline, _ := ctx.Deadline()
			mu.Lock()
			left = time.Until(deadline)
			mu.Unlock()
			h.begun <- struct{}{}
			defer func() { h.ended <- struct{}{} }()
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-h.let:
				return make([]lease.Outcome, len(ms)), nil
			}
		}
	})
	return h
}

func await(t *testing.T, what string, from <-chan struct{}, n int) {
	t.Helper()
	for i := range n {
		select {
		case <-from:
		case <-within(t).Done():
			t.Fatalf("%s: %d of %d", what, i, n)
		}
	}
}

func TestABundledCallEndsWithItsTimeOrWhenItIsTakenBack(t *testing.T) {
	n := startLeader(t)
	h := hold(n)
	stream := openBundle(t, n)
	send := func(calls ...*leasepb.Call) {
		if err := stream.Send(&leasepb.Calls{Calls: calls}); err != nil {
			t.Fatal(err)
		}
	}
	send(&leasepb.Call{Id: 1, Method: leasepb.Method_METHOD_RENEW, TimeoutMs: 20, Request: encodedRenewal(t)})
	await(t, "begun", h.begun, 1)
	await(t, "ended by its time", h.ended, 1)
	send(&leasepb.Call{Id: 2, Method: leasepb.Method_METHOD_RENEW, Request: encodedRenewal(t)})
	await(t, "begun", h.begun, 1)
	if left := h.left(); left < 25*time.Second || left > 30*time.Second {
		t.Errorf("without a time it is given %v", left)
	}
	send(&leasepb.Call{Id: 3, Cancel: true}) // nobody
	send(&leasepb.Call{Id: 2, Cancel: true})
	await(t, "ended by its client", h.ended, 1)
}

// TestCallsOfOneStreamAreBounded has more calls under way than there is room for: the rest
// waits, and goes on when replies are sent.
func TestCallsOfOneStreamAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, more = 1000, 300
		n := startInBubble(t, feed.Bounds{}, api.Watching{}, func(*fakeNode) {})
		h := hold(n.running)
		_, n.public = n.client()
		stream := openBundle(t, n.running)
		for id := range most + more {
			if err := stream.Send(&leasepb.Calls{Calls: []*leasepb.Call{{Id: uint64(id + 1), Method: leasepb.Method_METHOD_RENEW, Request: encodedRenewal(t)}}}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if begun := len(h.begun); begun != most {
			t.Errorf("%d are under way", begun)
		}
		close(h.let)
		for got := 0; got < most+more; {
			replies, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			got += len(replies.GetReplies())
		}
	})
}

func TestAClientThatGoesTakesItsCallsAlong(t *testing.T) {
	n := startLeader(t)
	h := hold(n)
	ctx, cancel := context.WithCancel(t.Context())
	stream, err := leasepb.NewBundleServiceClient(n.public).Bundle(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&leasepb.Calls{Calls: []*leasepb.Call{{Id: 1, Method: leasepb.Method_METHOD_RENEW, Request: encodedRenewal(t)}}}); err != nil {
		t.Fatal(err)
	}
	await(t, "begun", h.begun, 1)
	cancel()
	await(t, "ended", h.ended, 1)
}

func TestBundlesOfOneConnectionAreBounded(t *testing.T) {
	n := startLeader(t)
	call := &leasepb.Call{Id: 1, Method: leasepb.Method_METHOD_RENEW, Request: encodedRenewal(t)}
	var open []leasepb.BundleService_BundleClient
	for range 8 {
		open = append(open, openBundle(t, n))
		exchange(t, open[len(open)-1], call)
	}
	_, err := openBundle(t, n).Recv()
	var exhausted *lease.ExhaustedError
	if !errors.As(wire.FromCall(err, wire.Reads), &exhausted) {
		t.Errorf("a ninth: got %v", err)
	}
	if err := open[0].CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := open[0].Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	exchange(t, openBundle(t, n), call)
}
