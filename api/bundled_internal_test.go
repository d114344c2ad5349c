package api

import (
	"context"
	"testing"
	"testing/synctest"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/leasepb"
)

// scripted are calls of one stream to a service of which a renewal is answered at once, a
// forget when its context has ended, and a release fails with a text that is no UTF-8.
func scripted(t *testing.T) (*bundledCalls, context.Context) {
	ctx, cancel := context.WithCancel(t.Context())
	b := &bundleServer{codec: newCodec(), most: 100, methods: map[leasepb.Method]grpc.MethodHandler{
		leasepb.Method_METHOD_RENEW: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
			return &leasepb.RenewResponse{Answer: &leasepb.Answer{NowMs: 1}}, nil
		},
		leasepb.Method_METHOD_FORGET: func(_ any, ctx context.Context, _ func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		leasepb.Method_METHOD_RELEASE: func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
			return nil, status.Error(codes.Aborted, "\xff")
		},
	}}
	c := &bundledCalls{server: b, out: &replies{wake: make(chan struct{}, 1), room: make(chan struct{}, b.most)}, work: make(chan job), cancels: map[uint64]context.CancelFunc{}}
	t.Cleanup(func() { cancel(); c.workers.Wait() })
	return c, ctx
}

// answered returns the next reply, as if it had been sent.
func answered(c *bundledCalls) *leasepb.Reply {
	for {
		c.out.mu.Lock()
		if len(c.out.queue) > 0 {
			defer c.out.mu.Unlock()
			reply := c.out.queue[0]
			c.out.queue = c.out.queue[1:]
			<-c.out.room
			return reply
		}
		c.out.mu.Unlock()
		<-c.out.wake
	}
}

// TestAnIDCanBeUsedAgainOnceItIsAnswered takes the second call of each id back: what was
// kept of the first is not in its way, and nothing is kept of either.
func TestAnIDCanBeUsedAgainOnceItIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which time does not go on: no call ends by its time
		c, ctx := scripted(t)
		for id := range uint64(3000) {
			c.take(ctx, &leasepb.Call{Id: id, Method: leasepb.Method_METHOD_RENEW})
			if reply := answered(c); reply.GetId() != id || len(reply.GetResponse()) == 0 {
				t.Fatalf("got %v", reply)
			}
			c.take(ctx, &leasepb.Call{Id: id, Method: leasepb.Method_METHOD_FORGET, TimeoutMs: 3_600_000})
			c.take(ctx, &leasepb.Call{Id: id, Cancel: true})
			var failed spb.Status
			if err := proto.Unmarshal(answered(c).GetStatus(), &failed); err != nil || codes.Code(failed.GetCode()) == codes.DeadlineExceeded {
				t.Fatalf("call %d was not taken back: %v, %v", id, &failed, err)
			}
		}
		synctest.Wait()
		if n := c.idle.Load(); len(c.cancels) != 0 || len(c.out.room) != 0 || n > 3 {
			t.Errorf("nothing is under way; %d can be taken back, %d take up room, %d workers wait", len(c.cancels), len(c.out.room), n)
		}
	})
}

// TestAFailureIsNeverEmpty since an empty one would be taken for success.
func TestAFailureIsNeverEmpty(t *testing.T) {
	c, ctx := scripted(t)
	c.take(ctx, &leasepb.Call{Id: 1, Method: leasepb.Method_METHOD_RELEASE})
	reply := answered(c)
	var failed spb.Status
	if err := proto.Unmarshal(reply.GetStatus(), &failed); err != nil || codes.Code(failed.GetCode()) != codes.Aborted || failed.GetMessage() != "\uFFFD" {
		t.Errorf("got %v, with status %v, %v", reply, &failed, err)
	}
}
