package bundle

import (
	"context"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasenode/leasenode/api/leasepb"
)

// noStream has no connection behind it: what is added stays in the queue.
func noStream() *stream { return newStream(func(*stream, error) {}) }

func newPending() *pending {
	return &pending{call: leasepb.Call{Request: make([]byte, 100)}, done: make(chan struct{})}
}

// TestCallsThatAreGivenUpTakeUpNoRoom has calls come and go while nothing can be sent.
func TestCallsThatAreGivenUpTakeUpNoRoom(t *testing.T) {
	s := noStream()
	defer s.cancel()
	waits := newPending()
	s.add(waits)
	for range 10_000 {
		call := newPending()
		s.add(call)
		s.abandon(call, context.DeadlineExceeded)
		<-call.done
	}
	if len(s.queue) > 4 || len(s.calls) != 1 {
		t.Errorf("%d are in the queue, %d under way: there is one call", len(s.queue), len(s.calls))
	}
	if m := s.next(); len(m.GetCalls()) != 1 || m.GetCalls()[0] != &waits.call {
		t.Errorf("got %v", m)
	}
	if m := s.next(); m != nil || s.stale != 0 || len(s.queue) != 0 {
		t.Errorf("there is more: %v, %d in the queue, %d of them stale", m, len(s.queue), s.stale)
	}
}

// TestAMessageTakesFewCallsBack keeps it within what a server reads.
func TestAMessageTakesFewCallsBack(t *testing.T) {
	s := noStream()
	defer s.cancel()
	const n = 3 * maxCancels / 2
	var calls []*pending
	for range n {
		calls = append(calls, newPending())
		s.add(calls[len(calls)-1])
	}
	for s.next() != nil { // all of them are sent
	}
	for _, call := range calls {
		s.abandon(call, context.Canceled)
	}
	told := map[uint64]bool{}
	for m := s.next(); m != nil; m = s.next() {
		if len(m.GetCalls()) > maxCancels {
			t.Errorf("a message takes %d calls back", len(m.GetCalls()))
		}
		for _, call := range m.GetCalls() {
			told[call.GetId()] = call.GetCancel()
		}
	}
	if len(told) != n || len(s.calls)+len(s.cancels)+len(s.queue) != 0 {
		t.Errorf("%d of %d were taken back; %d, %d and %d are left", len(told), n, len(s.calls), len(s.cancels), len(s.queue))
	}
}

// TestAStreamIsClosedWithoutCalls has it stay open while one is under way, and take none
// once it is to be closed.
func TestAStreamIsClosedWithoutCalls(t *testing.T) {
	s := noStream()
	defer s.cancel()
	call := newPending()
	s.add(call)
	s.next()
	for range 3 {
		if s.closeIdle() {
			t.Error("it is closed with a call under way")
		}
	}
	s.take([]*leasepb.Reply{{Id: call.call.GetId()}})
	if !s.closeIdle() || s.add(newPending()) {
		t.Error("it is not closed, or takes a call")
	}
}

// slowStream is one whose end is slow to be received.
type slowStream struct {
	leasepb.BundleServiceClient
	grpc.BidiStreamingClient[leasepb.Calls, leasepb.Replies]
	ctx context.Context
	end chan struct{}
}

func (s *slowStream) Bundle(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[leasepb.Calls, leasepb.Replies], error) {
	s.ctx = ctx
	return s, nil
}

func (s *slowStream) Recv() (*leasepb.Replies, error) {
	<-s.ctx.Done()
	<-s.end
	return nil, s.ctx.Err()
}

func TestCloseIsDoneWhenAllStreamsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		under, err := grpc.NewClient("passthrough:///n1", grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		conn, s, slow := Over(under), noStream(), &slowStream{end: make(chan struct{})}
		conn.streams.Go(func() { s.run(slow) })
		synctest.Wait()
		s.cancel()
		closed := make(chan struct{})
		go func() { defer close(closed); _ = conn.Close() }()
		synctest.Wait()
		select {
		case <-closed:
			t.Error("it does not wait for what is received")
		default:
		}
		close(slow.end)
		<-closed
	})
}
