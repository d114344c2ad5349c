package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

const (
	// maxReplyBytes is the size at which a message takes no further reply.
	maxReplyBytes = 256 << 10
	// maxBundles is how many streams one connection of a client may have. With the calls
	// of a stream and their size it bounds the memory that a connection can take up.
	maxBundles = 8
	// maxTimeout is the most time that a call in a bundle is given.
	maxTimeout = 24 * time.Hour
	// maxIdleWorkers is how many goroutines of a stream wait for its next calls at most.
	maxIdleWorkers = 128
)

// bundleServer is BundleService: it has the calls of a bundle take the way of every other.
type bundleServer struct {
	leasepb.UnimplementedBundleServiceServer
	service   *leaseServer
	methods   map[leasepb.Method]grpc.MethodHandler
	intercept grpc.UnaryServerInterceptor
	codec     codec
	// most is how many calls of one stream may be under way.
	most int
}

// newBundleServer returns the service for calls of service, intercepted as gRPC's are.
func newBundleServer(service *leaseServer, intercept grpc.UnaryServerInterceptor, most int) *bundleServer {
	b := &bundleServer{service: service, methods: map[leasepb.Method]grpc.MethodHandler{}, intercept: intercept, codec: newCodec(), most: most}
	names := map[string]leasepb.Method{
		leasepb.LeaseService_Acquire_FullMethodName: leasepb.Method_METHOD_ACQUIRE,
		leasepb.LeaseService_Renew_FullMethodName:   leasepb.Method_METHOD_RENEW,
		leasepb.LeaseService_Release_FullMethodName: leasepb.Method_METHOD_RELEASE,
		leasepb.LeaseService_Forget_FullMethodName:  leasepb.Method_METHOD_FORGET,
		leasepb.LeaseService_Get_FullMethodName:     leasepb.Method_METHOD_GET,
	}
	desc := enveloped(&leasepb.LeaseService_ServiceDesc)
	for _, m := range desc.Methods {
		if method, ok := names["/"+desc.ServiceName+"/"+m.MethodName]; ok {
			b.methods[method] = m.Handler
		}
	}
	return b
}

// Bundle implements leasepb.BundleServiceServer.
func (b *bundleServer) Bundle(under grpc.BidiStreamingServer[leasepb.Calls, leasepb.Replies]) error {
	if l := lineOf(under.Context()); l != nil {
		defer l.bundles.Add(-1)
		if l.bundles.Add(1) > maxBundles {
			return &lease.ExhaustedError{Resource: "streams of bundles on one connection", Limit: maxBundles}
		}
	}
	ctx, cancel := context.WithCancel(under.Context())
	r := &replies{wake: make(chan struct{}, 1), room: make(chan struct{}, b.most)}
	calls := bundledCalls{server: b, out: r, work: make(chan job), cancels: map[uint64]context.CancelFunc{}}
	var sending sync.WaitGroup
	sending.Go(func() { r.sendLoop(ctx, under) })
	defer sending.Wait()
	defer calls.workers.Wait()
	defer cancel()
	for {
		message, err := under.Recv()
		if errors.Is(err, io.EOF) { // of a client that waits for no answer
			return nil
		}
		if err != nil {
			return err
		}
		for _, call := range message.GetCalls() {
			calls.take(ctx, call)
		}
	}
}

// bundledCalls are the calls of one stream that are under way.
type bundledCalls struct {
	server *bundleServer
	out    *replies
	// workers answer calls. Those that have nothing to do take the next from work: a new
	// goroutine for each call would spend much of its time on its stack.
	workers sync.WaitGroup
	work    chan job
	idle    atomic.Int64 // workers that wait for work, or are about to

	mu      sync.Mutex
	cancels map[uint64]context.CancelFunc
}

// job is a call to be answered under ctx.
type job struct {
	ctx    context.Context
	cancel context.CancelFunc
	call   *leasepb.Call
}

// take begins call, as soon as there is room for it, or cancels the one that it names.
func (c *bundledCalls) take(ctx context.Context, call *leasepb.Call) {
	if call.GetCancel() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if cancel, ok := c.cancels[call.GetId()]; ok {
			cancel()
		}
		return
	}
	select {
	case c.out.room <- struct{}{}:
	case <-ctx.Done():
		return
	}
	j := c.begin(ctx, call)
	select {
	case c.work <- j:
	default:
		c.workers.Go(func() { c.workLoop(ctx, j) })
	}
}

// workLoop does j, and then what comes, until the stream ends or enough others are idle.
func (c *bundledCalls) workLoop(ctx context.Context, j job) {
	for {
		c.do(j)
		if c.idle.Add(1) > maxIdleWorkers {
			c.idle.Add(-1)
			return
		}
		select {
		case j = <-c.work:
			c.idle.Add(-1)
		case <-ctx.Done():
			return
		}
	}
}

func (c *bundledCalls) do(j job) {
	reply := c.server.serve(j.ctx, j.call)
	c.mu.Lock()
	delete(c.cancels, j.call.GetId()) // before the client may use the id again
	c.mu.Unlock()
	j.cancel()
	c.out.add(reply)
}

// begin has call be one that is under way.
func (c *bundledCalls) begin(ctx context.Context, call *leasepb.Call) job {
	timeout := defaultTimeout
	if ms := call.GetTimeoutMs(); ms > 0 { // bounded, since it could wrap
		timeout = time.Duration(min(ms, maxTimeout.Milliseconds())) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancels[call.GetId()] = cancel
	return job{ctx, cancel, call}
}

// serve answers call.
func (b *bundleServer) serve(ctx context.Context, call *leasepb.Call) *leasepb.Reply {
	response, err := b.answer(ctx, call)
	if err == nil {
		var encoded []byte
		if encoded, err = proto.Marshal(response); err == nil {
			return &leasepb.Reply{Id: call.GetId(), Response: encoded}
		}
	}
	return &leasepb.Reply{Id: call.GetId(), Status: encodeStatus(status.Convert(err))}
}

// encodeStatus returns st as a reply has it, which is never empty: a reply without a status
// is of a call that was done. A text that is no UTF-8 is made so, as gRPC does.
func encodeStatus(st *status.Status) []byte {
	failed := st.Proto()
	failed.Message = strings.ToValidUTF8(failed.GetMessage(), "\uFFFD")
	encoded, err := proto.Marshal(failed)
	if err != nil { // by nothing but a detail that was not made here
		encoded, _ = proto.Marshal(status.New(st.Code(), "").Proto())
	}
	return encoded
}

// answer has call answered by the method that it names.
func (b *bundleServer) answer(ctx context.Context, call *leasepb.Call) (proto.Message, error) {
	handle, ok := b.methods[call.GetMethod()]
	if !ok {
		invalid := &lease.InvalidError{Field: "method", Problem: "is " + call.GetMethod().String(), Limit: "one that can be called in a bundle"}
		return nil, wire.StatusOf(invalid, b.service.node.Consensus.Leader()).Err()
	}
	response, err := handle(b.service, ctx, func(into any) error { return b.open(call, into.(*envelope)) }, b.intercept)
	if err != nil {
		return nil, err
	}
	return response.(proto.Message), nil
}

// open decodes the request of call. What would hold up the others of its stream has to be
// called by itself.
func (b *bundleServer) open(call *leasepb.Call, e *envelope) error {
	if size := len(call.GetRequest()); size > wire.MaxBundledBytes {
		e.err = &lease.InvalidError{Field: "request", Problem: fmt.Sprintf("has %d bytes", size), Limit: fmt.Sprintf("%d in a bundle", wire.MaxBundledBytes)}
		return nil
	}
	err := b.codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(call.GetRequest())}, e)
	if acquire, ok := e.request.(*leasepb.AcquireRequest); ok && e.err == nil && acquire.GetWaitMs() != 0 {
		e.err = &lease.InvalidError{Field: "wait", Problem: fmt.Sprintf("is %d ms", acquire.GetWaitMs()), Limit: "0 in a bundle"}
	}
	return err
}

// replies are what is to be sent on one stream.
type replies struct {
	wake chan struct{} // has a token when there are any
	// room has a token for each call from its arrival until its reply is sent: a client
	// that reads no replies can have no more calls answered.
	room chan struct{}

	mu    sync.Mutex
	queue []*leasepb.Reply
}

func (r *replies) add(reply *leasepb.Reply) {
	r.mu.Lock()
	r.queue = append(r.queue, reply)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// sendLoop sends until ctx ends. What ends the stream, receiving notices.
func (r *replies) sendLoop(ctx context.Context, under grpc.BidiStreamingServer[leasepb.Calls, leasepb.Replies]) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		runtime.Gosched() // what one log entry has decided is answered together
		for message := r.next(); message != nil; message = r.next() {
			if under.Send(message) != nil {
				return
			}
			for range message.GetReplies() {
				<-r.room
			}
		}
	}
}

// next returns the next message, or nil if there is nothing to send.
func (r *replies) next() *leasepb.Replies {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) == 0 {
		return nil
	}
	size, n := 0, 0
	for n < len(r.queue) && size <= maxReplyBytes {
		size += len(r.queue[n].GetResponse()) + len(r.queue[n].GetStatus())
		n++
	}
	message := &leasepb.Replies{Replies: r.queue[:n:n]}
	if r.queue = r.queue[n:]; len(r.queue) == 0 {
		r.queue = nil
	}
	return message
}
