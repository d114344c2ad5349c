package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

func TestEachCallGetsItsAnswer(t *testing.T) {
	s := &script{bundle: answers}
	conn := run(t, s)
	var callers sync.WaitGroup
	for caller := range 64 {
		callers.Go(func() {
			for n := range 100 {
				key := fmt.Sprintf("%d-%d", caller, n)
				if got, err := renew(t.Context(), conn, key); err != nil || got != key {
					t.Errorf("renew %q: answered with %q, %v", key, got, err)
				}
			}
		})
	}
	callers.Wait()
	if c := s.counts(); c.calls != 6400 || c.streams != 1 || c.plain != 0 || c.messages >= c.calls {
		t.Errorf("6,400 calls of 64 callers came as %+v", c)
	}
}

// TestWhatWaitsTravelsTogether holds the stream up and has calls wait.
func TestWhatWaitsTravelsTogether(t *testing.T) {
	full, read := make(chan struct{}), make(chan struct{})
	s := &script{bundle: func(s *script, stream bidi) error {
		close(full)
		<-read // until then the window of the stream fills up
		return answers(s, stream)
	}}
	conn := run(t, s)
	var callers sync.WaitGroup
	const n = 400
	for range n {
		callers.Go(func() {
			request := &leasepb.RenewRequest{Key: []byte("k"), Owner: make([]byte, 4000)}
			if _, err := leasepb.NewLeaseServiceClient(conn).Renew(t.Context(), request); err != nil {
				t.Error(err)
			}
		})
	}
	<-full
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := renew(ctx, conn, "given up"); !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrUnavailable) {
		t.Errorf("a call that could not be sent in its time: %v", err)
	}
	close(read)
	callers.Wait()
	for _, message := range s.sent() {
		size := 0
		for _, call := range message {
			if strings.Contains(string(call.GetRequest()), "given up") {
				t.Error("what was given up was sent")
			}
			size += proto.Size(call)
		}
		if size > 64<<10+5000 {
			t.Errorf("a message has %d bytes", size)
		}
	}
	if c := s.counts(); c.calls != n || c.messages > n/2 {
		t.Errorf("%d calls came as %+v", n, c)
	}
}

// TestAFailureIsTheSameInABundle compares with a plain call.
func TestAFailureIsTheSameInABundle(t *testing.T) {
	held := &lease.HeldError{Record: lease.Record{Key: "k", Owner: "o", Epoch: 7}, Remaining: time.Second}
	want := wire.StatusOf(held, wire.Leader{ID: "n1", APIAddr: "h:1"})
	s := &script{bundle: func(s *script, stream bidi) error {
		calls, err := s.receive(stream)
		if err != nil {
			return err
		}
		failed, err := proto.Marshal(want.Proto())
		if err != nil {
			return err
		}
		if err := stream.Send(&leasepb.Replies{Replies: []*leasepb.Reply{{Id: calls[0].GetId(), Status: failed}}}); err != nil {
			return err
		}
		return silent(s, stream)
	}}
	_, err := renew(t.Context(), run(t, s), "k")
	if got := status.Convert(err); !proto.Equal(got.Proto(), want.Proto()) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !wire.Answered(err) || wire.LeaderOf(err).ID != "n1" {
		t.Errorf("it is no answer, or names no leader: %v", err)
	}
}

func TestADeadlineEndsACall(t *testing.T) {
	s := &script{bundle: func(s *script, stream bidi) error {
		if _, err := s.receive(stream); err != nil { // which stays without an answer
			return err
		}
		return answers(s, stream)
	}}
	conn := run(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
	defer cancel()
	_, err := renew(ctx, conn, "k")
	got := wire.FromCall(err, wire.Mutates)
	if status.Code(err) != codes.DeadlineExceeded || !errors.Is(got, lease.ErrOutcomeUnknown) || !errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if ms := s.sent()[0][0].GetTimeoutMs(); ms < 1 || ms > 150 {
		t.Errorf("the server was told %d ms", ms)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 0)
	defer cancel()
	if _, err = renew(ctx, conn, "k"); !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrUnavailable) {
		t.Errorf("without any time: got %v", err)
	}
	if _, err := renew(t.Context(), conn, "the next"); err != nil {
		t.Error(err)
	}
	if c := s.counts(); c.cancels != 0 || c.calls != 2 {
		t.Errorf("a call whose end the server knows was taken back: %+v", c)
	}
}

func TestACancelledCallIsTakenBack(t *testing.T) {
	s := &script{bundle: silent}
	conn := run(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { _, err := renew(ctx, conn, "k"); ended <- err }()
	eventually(t, s, "the call", func(c counts) bool { return c.calls == 1 })
	cancel()
	if err := <-ended; !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
	eventually(t, s, "the cancellation", func(c counts) bool { return c.cancels == 1 })
	if got, made := s.sent()[1][0].GetId(), s.sent()[0][0].GetId(); got != made {
		t.Errorf("call %d was taken back, and %d cancelled", got, made)
	}
}

// TestAServerWithoutBundles has every call be done once, plainly, and is not asked for a
// bundle again.
func TestAServerWithoutBundles(t *testing.T) {
	s := &script{}
	conn := run(t, s)
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			for range 10 {
				if _, err := renew(t.Context(), conn, "k"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
	if c := s.counts(); c.plain != 200 || c.streams != 1 {
		t.Errorf("200 calls were done %d times, after %d tries of a bundle", c.plain, c.streams)
	}
}

func TestWhatIsNoneForABundle(t *testing.T) {
	s := &script{bundle: answers}
	conn := run(t, s)
	client := leasepb.NewLeaseServiceClient(conn)
	for name, call := range map[string]func() error{
		"a wait": func() error {
			_, err := client.Acquire(t.Context(), &leasepb.AcquireRequest{WaitMs: 1})
			return err
		},
		"a large request": func() error {
			_, err := client.Renew(t.Context(), &leasepb.RenewRequest{Owner: make([]byte, 17<<10)})
			return err
		},
		"another method": func() error { _, err := client.List(t.Context(), &leasepb.ListRequest{}); return err },
		"an option": func() error {
			_, err := client.Renew(t.Context(), &leasepb.RenewRequest{}, grpc.WaitForReady(true))
			return err
		},
		"an option alone": func() error {
			return conn.Invoke(t.Context(), leasepb.LeaseService_Renew_FullMethodName, &leasepb.RenewRequest{}, &leasepb.RenewResponse{}, grpc.WaitForReady(true))
		},
	} {
		before := s.counts()
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c := s.counts(); c.plain != before.plain+1 || c.calls != 0 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

func TestMalformedRepliesAreUnknown(t *testing.T) {
	for name, reply := range map[string]*leasepb.Reply{
		"response":            {Response: []byte{0xff}},
		"status":              {Status: []byte{0xff}},
		"status without code": {Status: []byte{0x12, 1, 'x'}},
	} {
		s := &script{bundle: func(s *script, stream bidi) error {
			calls, err := s.receive(stream)
			if err != nil {
				return err
			}
			// A reply to a call that there is not is passed over.
			mine := &leasepb.Reply{Id: calls[0].GetId(), Response: reply.GetResponse(), Status: reply.GetStatus()}
			if err := stream.Send(&leasepb.Replies{Replies: []*leasepb.Reply{{Id: 1 << 60}, mine}}); err != nil {
				return err
			}
			return silent(s, stream)
		}}
		if _, err := renew(t.Context(), run(t, s), "k"); !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
