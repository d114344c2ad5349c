package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// TestAStreamThatBreaksTellsNothing ends the stream in ways that might be taken for the
// answer of a call.
func TestAStreamThatBreaksTellsNothing(t *testing.T) {
	held := wire.StatusOf(&lease.HeldError{Record: lease.Record{Key: "k"}}, wire.Leader{}).Err()
	for name, end := range map[string]error{
		"as if nothing was done": wire.StatusOf(fmt.Errorf("not now: %w", lease.ErrUnavailable), wire.Leader{}).Err(),
		"as if it was held":      held,
		"without a word":         nil,
		"by a fault":             status.Error(codes.Internal, "a bug"),
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{bundle: func(s *script, stream bidi) error {
				if _, err := s.receive(stream); err != nil {
					return err
				}
				return end
			}}
			conn := run(t, s)
			for n := range 2 {
				_, err := renew(t.Context(), conn, "k")
				if got := wire.FromCall(err, wire.Mutates); wire.Answered(err) || !errors.Is(got, lease.ErrOutcomeUnknown) {
					t.Errorf("got %v", got)
				}
				if c := s.counts(); c.streams != n+1 || c.plain != 0 {
					t.Errorf("after %d calls: %+v", n+1, c)
				}
			}
		})
	}
}

func TestWhatNeverLeftWasNotDone(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() // it accepts in the kernel, and never says a word of HTTP/2
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err = renew(ctx, dial(t, l.Addr().String()), "k"); !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrUnavailable) {
		t.Errorf("nobody spoke: got %v", err)
	}
	if _, err = renew(t.Context(), dial(t, "127.0.0.1:1"), "k"); !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrUnavailable) {
		t.Errorf("refused: got %v", err)
	}
}

// TestAServerThatHasAnsweredKnowsBundles has a stream end, with a call under way, as if it
// did not: that call may have been done, and is not made again.
func TestAServerThatHasAnsweredKnowsBundles(t *testing.T) {
	s := &script{bundle: func(s *script, stream bidi) error {
		calls, err := s.receive(stream)
		if err != nil {
			return err
		}
		if err := stream.Send(repliesTo(calls)); err != nil {
			return err
		}
		if _, err = s.receive(stream); err != nil {
			return err
		}
		return status.Error(codes.Unimplemented, "not here")
	}}
	conn := run(t, s)
	for n := range 2 {
		if _, err := renew(t.Context(), conn, "k"); err != nil {
			t.Error(err)
		}
		if _, err := renew(t.Context(), conn, "k"); !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrOutcomeUnknown) {
			t.Errorf("got %v", err)
		}
		if c := s.counts(); c.plain != 0 || c.streams != n+1 {
			t.Errorf("got %+v", c)
		}
	}
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	s := &script{bundle: silent}
	conn := run(t, s)
	ended := make(chan error)
	go func() { _, err := renew(t.Context(), conn, "k"); ended <- err }()
	eventually(t, s, "the call", func(c counts) bool { return c.calls == 1 })
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrOutcomeUnknown) {
		t.Errorf("under way: got %v", err)
	}
	if _, err := renew(t.Context(), conn, "k"); !errors.Is(wire.FromCall(err, wire.Mutates), lease.ErrUnavailable) {
		t.Errorf("after it: got %v", err)
	}
}

// TestCloseWaitsForAllThatItsStreamsRun looks at what runs when Close has returned.
func TestCloseWaitsForAllThatItsStreamsRun(t *testing.T) {
	for _, bundle := range []func(*script, bidi) error{silent, answers} {
		s := &script{bundle: bundle}
		conn := run(t, s)
		var callers sync.WaitGroup
		for range 20 {
			callers.Go(func() {
				for { // until it is closed
					if _, err := renew(t.Context(), conn, "k"); err != nil {
						return
					}
				}
			})
		}
		eventually(t, s, "calls", func(c counts) bool { return c.calls >= 20 })
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		stacks := make([]byte, 4<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for _, loop := range []string{").run(", ").sendLoop(", ").receiveLoop("} {
			if strings.Contains(string(stacks), "bundle.(*stream"+loop) {
				t.Errorf("%q still runs", loop)
			}
		}
		callers.Wait()
	}
}

// TestAnIdleStreamEnds leaves no stream with a server whose client does nothing, and loses
// no call that comes just then.
func TestAnIdleStreamEnds(t *testing.T) {
	s := &script{bundle: answers}
	conn := run(t, s)
	if _, err := renew(t.Context(), conn, "k"); err != nil {
		t.Fatal(err)
	}
	eventually(t, s, "the end", func(c counts) bool { return c.ended == 1 })
	if _, err := renew(t.Context(), conn, "k"); err != nil {
		t.Error(err)
	}
	if c := s.counts(); c.streams != 2 || c.calls != 2 || c.plain != 0 {
		t.Errorf("got %+v", c)
	}
}
