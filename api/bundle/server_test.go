package bundle_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/leasenode/leasenode/api/bundle"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a server that does with a stream what a test says, and counts plain calls.
type script struct {
	leasepb.UnimplementedBundleServiceServer
	leasepb.UnimplementedLeaseServiceServer
	bundle func(*script, bidi) error // nil for a server that knows no bundles

	mu       sync.Mutex
	messages [][]*leasepb.Call // as they came
	streams  int
	plain    int
	ended    int // streams
}

type bidi = grpc.BidiStreamingServer[leasepb.Calls, leasepb.Replies]

func (s *script) Bundle(stream bidi) error {
	s.locked(func() { s.streams++ })
	defer s.locked(func() { s.ended++ })
	return s.bundle(s, stream)
}

// Renew is the plain call.
func (s *script) Renew(context.Context, *leasepb.RenewRequest) (*leasepb.RenewResponse, error) {
	s.locked(func() { s.plain++ })
	return &leasepb.RenewResponse{Answer: &leasepb.Answer{NowMs: 1}}, nil
}

func (s *script) Acquire(context.Context, *leasepb.AcquireRequest) (*leasepb.AcquireResponse, error) {
	s.locked(func() { s.plain++ })
	return &leasepb.AcquireResponse{}, nil
}

func (s *script) List(context.Context, *leasepb.ListRequest) (*leasepb.ListResponse, error) {
	s.locked(func() { s.plain++ })
	return &leasepb.ListResponse{}, nil
}

func (s *script) locked(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
}

// sent are the messages that came.
func (s *script) sent() [][]*leasepb.Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// counts are what came so far.
type counts struct{ streams, ended, messages, calls, cancels, plain int }

func (s *script) counts() counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := counts{streams: s.streams, ended: s.ended, messages: len(s.messages), plain: s.plain}
	for _, message := range s.messages {
		for _, call := range message {
			if call.GetCancel() {
				c.cancels++
			} else {
				c.calls++
			}
		}
	}
	return c
}

// receive takes the next message of the stream in.
func (s *script) receive(stream bidi) ([]*leasepb.Call, error) {
	message, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	s.locked(func() { s.messages = append(s.messages, message.GetCalls()) })
	return message.GetCalls(), nil
}

// answered returns the reply to a renewal: its key as the epoch's owner.
func answered(call *leasepb.Call) *leasepb.Reply {
	var request leasepb.RenewRequest
	if err := proto.Unmarshal(call.GetRequest(), &request); err != nil {
		panic(err)
	}
	response, err := proto.Marshal(&leasepb.RenewResponse{Answer: &leasepb.Answer{Record: &leasepb.Record{Key: request.GetKey()}}})
	if err != nil {
		panic(err)
	}
	return &leasepb.Reply{Id: call.GetId(), Response: response}
}

// answers answers what comes, the last of a message first.
func answers(s *script, stream bidi) error {
	for {
		calls, err := s.receive(stream)
		if err != nil {
			return nil
		}
		if err := stream.Send(repliesTo(calls)); err != nil {
			return err
		}
	}
}

func repliesTo(calls []*leasepb.Call) *leasepb.Replies {
	var replies leasepb.Replies
	for _, call := range slices.Backward(calls) {
		if !call.GetCancel() {
			replies.Replies = append(replies.Replies, answered(call))
		}
	}
	return &replies
}

// silent takes everything in and answers nothing.
func silent(s *script, stream bidi) error {
	for {
		if _, err := s.receive(stream); err != nil {
			return nil
		}
	}
}

// run serves s until the test ends, and returns a connection to it.
func run(t *testing.T, s *script) *bundle.Conn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(any, grpc.ServerStream) error {
		s.locked(func() { s.streams++ })
		return status.Error(codes.Unimplemented, "unknown service")
	}))
	leasepb.RegisterLeaseServiceServer(server, s)
	if s.bundle != nil {
		leasepb.RegisterBundleServiceServer(server, s)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-served })
	return dial(t, l.Addr().String())
}

func dial(t *testing.T, addr string) *bundle.Conn {
	t.Helper()
	under, err := grpc.NewClient("passthrough:///"+addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	conn := bundle.Over(under)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func renew(ctx context.Context, conn grpc.ClientConnInterface, key string) (string, error) {
	response, err := leasepb.NewLeaseServiceClient(conn).Renew(ctx, &leasepb.RenewRequest{Key: []byte(key)})
	return string(response.GetAnswer().GetRecord().GetKey()), err
}

// eventually waits until what the script has counted is as wanted.
func eventually(t *testing.T, s *script, what string, wanted func(counts) bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !wanted(s.counts()) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: did not come: %+v", what, s.counts())
		}
		time.Sleep(time.Millisecond)
	}
}
