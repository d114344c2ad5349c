package bundle

import (
	"context"
	"errors"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
)

const (
	// maxBundleBytes is the size at which a message takes no further call.
	maxBundleBytes = 64 << 10
	// maxCancels is how many calls one message takes back: with the calls that go with
	// them they are far below what a server reads.
	maxCancels = 4096
	// idleTime is how long a stream without calls is kept, so that a client which calls
	// now and then has no stream at the server, with its goroutines there.
	idleTime = 2 * time.Second
	// endTime is how long a server has to end a stream that was closed here.
	endTime = 10 * time.Second
)

// errIdle ends a stream that was not used.
var errIdle = errors.New("the stream is idle")

// stream is one stream of bundles. It begins with run, and takes calls until it ends.
type stream struct {
	ctx    context.Context
	cancel context.CancelFunc
	// leave is told that it takes no more calls, and why.
	leave func(*stream, error)
	// wake has a token when there is something to send.
	wake chan struct{}

	mu      sync.Mutex
	ended   bool
	last    uint64              // id
	calls   map[uint64]*pending // those that are not answered
	queue   []*pending          // of these, those that are not sent; abandoned ones may be among them
	stale   int                 // how many of queue were abandoned; at most half, or a few
	cancels []uint64            // to be told to the server
	used    bool                // since the last look
	replied bool                // the server has sent something: it knows bundles
}

func newStream(leave func(*stream, error)) *stream {
	ctx, cancel := context.WithCancel(context.Background())
	return &stream{ctx: ctx, cancel: cancel, leave: leave, wake: make(chan struct{}, 1), calls: map[uint64]*pending{}}
}

// add takes call, unless the stream has ended.
func (s *stream) add(call *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.last++
	call.call.Id = s.last
	s.calls[s.last] = call
	s.queue = append(s.queue, call)
	s.used = true
	s.signal()
	return true
}

func (s *stream) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// abandon ends call, whose caller waits no longer because of why, unless it has ended.
func (s *stream) abandon(call *pending, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls[call.call.Id] != call {
		return
	}
	switch {
	case !call.left:
		s.stale++
	case errors.Is(why, context.Canceled) && !s.ended: // a deadline the server knows
		s.cancels = append(s.cancels, call.call.Id)
		s.signal()
	}
	s.failLocked(call, status.FromContextError(why).Err())
	s.tidyLocked()
}

// tidyLocked takes abandoned calls out of the queue when they are most of it: while
// nothing can be sent it would grow with each call that is made and given up.
func (s *stream) tidyLocked() {
	if s.stale <= len(s.queue)/2 {
		return
	}
	s.queue = slices.DeleteFunc(s.queue, func(call *pending) bool { return s.calls[call.call.Id] != call })
	s.stale = 0
}

// failLocked ends call with err, marked if it certainly was not done.
func (s *stream) failLocked(call *pending, err error) {
	if !call.left && !errors.Is(err, errNoBundles) {
		err = wire.Unsent(err)
	}
	delete(s.calls, call.call.Id)
	call.err = err
	close(call.done)
}

// run sends and receives until the stream ends, and returns when all of it has ended.
func (s *stream) run(service leasepb.BundleServiceClient) {
	defer s.cancel()
	under, err := service.Bundle(s.ctx)
	if err != nil {
		s.end(err)
		return
	}
	var receiving sync.WaitGroup
	receiving.Go(func() { s.end(s.receiveLoop(under)) })
	s.sendLoop(under)
	// Nothing is sent any more: a server that does not end the stream then is left.
	left := time.AfterFunc(endTime, s.cancel)
	defer left.Stop()
	receiving.Wait()
}

// end fails all calls that are not answered. What a server says of a stream is not said of
// any of its calls: it must not be taken for their answer.
func (s *stream) end(why error) {
	s.mu.Lock()
	replied := s.replied
	s.mu.Unlock()
	if st := status.Convert(why); st.Code() == codes.Unimplemented && !replied {
		why = errNoBundles // so that nothing was done
	} else {
		why = status.Error(st.Code(), st.Message())
	}
	s.leave(s, why)
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for _, call := range s.calls {
		s.failLocked(call, why)
	}
	s.queue, s.cancels, s.stale = nil, nil, 0
}

// receiveLoop returns why the stream has ended.
func (s *stream) receiveLoop(under grpc.BidiStreamingClient[leasepb.Calls, leasepb.Replies]) error {
	for {
		replies, err := under.Recv()
		if errors.Is(err, io.EOF) { // the server may end a stream, too, but not with calls under way
			return status.Error(codes.Unavailable, "the server has ended the stream")
		}
		if err != nil {
			return err
		}
		s.take(replies.GetReplies())
	}
}

func (s *stream) take(replies []*leasepb.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replied = true
	for _, reply := range replies {
		if call, ok := s.calls[reply.GetId()]; ok { // else it was abandoned
			delete(s.calls, reply.GetId())
			call.reply = reply
			close(call.done)
		}
	}
}

// sendLoop sends what waits until the stream ends, or is idle and closed here.
func (s *stream) sendLoop(under grpc.BidiStreamingClient[leasepb.Calls, leasepb.Replies]) {
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-idle.C:
			if s.closeIdle() {
				s.leave(s, errIdle)
				_ = under.CloseSend() // it never fails
				return
			}
			idle.Reset(idleTime)
			continue
		case <-s.wake:
		}
		runtime.Gosched() // those who are about to call may come along
		for calls := s.next(); calls != nil; calls = s.next() {
			if err := under.Send(calls); err != nil {
				return // receiving tells why
			}
		}
	}
}

// closeIdle has the stream take no more calls, and reports true, if there are none and
// have been none for a while.
func (s *stream) closeIdle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := !s.used && len(s.calls) == 0 && len(s.cancels) == 0
	s.used = false
	s.ended = s.ended || idle
	return idle
}

// next returns the next message to send, whose calls count as sent, or nil if there is
// nothing to send.
func (s *stream) next() *leasepb.Calls {
	s.mu.Lock()
	defer s.mu.Unlock()
	var message leasepb.Calls
	told := min(len(s.cancels), maxCancels)
	for _, id := range s.cancels[:told] {
		message.Calls = append(message.Calls, &leasepb.Call{Id: id, Cancel: true})
	}
	s.cancels = slices.Delete(s.cancels, 0, told)
	size, n := 0, 0
	for _, call := range s.queue {
		if size > maxBundleBytes {
			break
		}
		n++
		if s.calls[call.call.Id] != call { // abandoned
			s.stale--
			continue
		}
		call.left = true
		size += proto.Size(&call.call)
		message.Calls = append(message.Calls, &call.call)
	}
	s.queue = slices.Delete(s.queue, 0, n)
	if len(message.Calls) == 0 {
		return nil
	}
	return &message
}
