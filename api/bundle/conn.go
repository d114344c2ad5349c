package bundle

import (
	"context"
	"errors"
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

// plainTime is how long calls go without bundles to a server that knows none: it may be
// another one then.
const plainTime = time.Minute

// Conn is a connection to one server. It is safe for concurrent use.
type Conn struct {
	under *grpc.ClientConn
	// streams are those that have not ended.
	streams sync.WaitGroup

	mu     sync.Mutex
	stream *stream // takes new calls; nil if there is none
	plain  time.Time
	closed bool
}

var _ grpc.ClientConnInterface = (*Conn)(nil)

// Over returns a Conn that uses conn, which has to be made with [wire.DialOptions] and
// belongs to it from there on. It starts nothing by itself.
func Over(conn *grpc.ClientConn) *Conn { return &Conn{under: conn} }

// Close ends the connection and all that is under way, and returns when it has ended.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	err := c.under.Close() // which ends the streams
	c.streams.Wait()
	return err
}

// NewStream implements [grpc.ClientConnInterface].
func (c *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, options ...grpc.CallOption) (grpc.ClientStream, error) {
	return c.under.NewStream(ctx, desc, method, options...)
}

// Invoke implements [grpc.ClientConnInterface].
func (c *Conn) Invoke(ctx context.Context, name string, request, response any, options ...grpc.CallOption) error {
	method, message, ok := methodOf(name, request)
	into, decodes := response.(proto.Message)
	if !ok || !decodes || slices.ContainsFunc(options, matters) {
		return c.under.Invoke(ctx, name, request, response, options...)
	}
	err := c.carry(ctx, method, message, into)
	if errors.Is(err, errNoBundles) {
		return c.under.Invoke(ctx, name, request, response, options...)
	}
	return err
}

// matters reports whether option would be lost in a bundle. A generated client gives one
// which only says that the name of the method is a constant.
func matters(option grpc.CallOption) bool {
	_, static := option.(grpc.StaticMethodCallOption)
	return !static
}

// errNoBundles is of a call that was not made, because the server knows no bundles.
var errNoBundles = errors.New("the server knows no bundles")

// carry makes the call in a bundle.
func (c *Conn) carry(ctx context.Context, method leasepb.Method, request, response proto.Message) error {
	if err := ctx.Err(); err != nil {
		return wire.Unsent(status.FromContextError(err).Err())
	}
	encoded, err := proto.Marshal(request)
	if err != nil {
		return wire.Unsent(status.Errorf(codes.Internal, "encode the request: %v", err))
	}
	call := &pending{call: leasepb.Call{Method: method, Request: encoded}, done: make(chan struct{})}
	if deadline, ok := ctx.Deadline(); ok {
		// Rounded up: 0 would be no deadline.
		call.call.TimeoutMs = max(1, int64((time.Until(deadline)+time.Millisecond-1)/time.Millisecond))
	}
	s, err := c.join(call)
	if err != nil {
		return err
	}
	select {
	case <-call.done:
	case <-ctx.Done():
		s.abandon(call, ctx.Err())
	}
	return call.result(response)
}

// join hands call to the stream that takes new ones, which it begins if there is none.
func (c *Conn) join(call *pending) (*stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, wire.Unsent(status.Error(codes.Canceled, "the connection is closed"))
	case time.Now().Before(c.plain):
		return nil, errNoBundles
	case c.stream != nil && c.stream.add(call):
		return c.stream, nil
	}
	s := newStream(c.leave)
	s.add(call)
	c.stream = s
	c.streams.Go(func() { s.run(leasepb.NewBundleServiceClient(c.under)) })
	return s, nil
}

// leave is told that s takes no more calls, and why.
func (c *Conn) leave(s *stream, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stream == s {
		c.stream = nil
	}
	if errors.Is(why, errNoBundles) {
		c.plain = time.Now().Add(plainTime)
	}
}
