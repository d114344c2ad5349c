package bundle

import (
	"context"
	"testing"

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
