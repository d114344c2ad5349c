package wire_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// dial connects to addr as a client of ours does.
func dial(t *testing.T, addr string, options ...grpc.DialOption) leasepb.LeaseServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return leasepb.NewLeaseServiceClient(conn)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestARequestThatNeverLeftWasNotDone(t *testing.T) {
	closed := listen(t)
	_ = closed.Close()
	silent := listen(t) // accepts in the kernel, and never says a word of HTTP/2
	for _, addr := range []string{closed.Addr().String(), silent.Addr().String()} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, failed := dial(t, addr, wire.DialOptions()...).Renew(ctx, &leasepb.RenewRequest{})
		if err := wire.FromCall(failed, wire.Mutates); !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, lease.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, failed := dial(t, silent.Addr().String(), wire.DialOptions()...).Renew(ended, &leasepb.RenewRequest{})
	if err := wire.FromCall(failed, wire.Mutates); !errors.Is(err, lease.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: got %v", err)
	}
}

func TestARequestThatNobodyReadsIsNotSent(t *testing.T) {
	closed := listen(t)
	_ = closed.Close()
	client := dial(t, closed.Addr().String(), wire.DialOptions()...)
	_, failed := client.Renew(t.Context(), &leasepb.RenewRequest{Key: make([]byte, wire.MaxRequestBytes-4)})
	if err := wire.FromCall(failed, wire.Mutates); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("the largest request: got %v", err)
	}
	_, failed = client.Renew(t.Context(), &leasepb.RenewRequest{Key: make([]byte, wire.MaxRequestBytes-3)})
	var exhausted *lease.ExhaustedError
	if err := wire.FromCall(failed, wire.Mutates); !errors.As(err, &exhausted) || exhausted.Limit != wire.MaxRequestBytes {
		t.Errorf("one byte more: got %v", err)
	}
}

func TestWithoutTheDialOptionsNothingIsKnown(t *testing.T) {
	closed := listen(t)
	_ = closed.Close()
	_, failed := dial(t, closed.Addr().String()).Renew(t.Context(), &leasepb.RenewRequest{})
	if err := wire.FromCall(failed, wire.Mutates); !errors.Is(err, lease.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}

// hanging is a server that reads a renewal and never answers it.
type hanging struct {
	leasepb.UnimplementedLeaseServiceServer
	got chan struct{}
}

func (h hanging) Renew(ctx context.Context, _ *leasepb.RenewRequest) (*leasepb.RenewResponse, error) {
	close(h.got)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestARequestThatLeftAndWasNotAnsweredIsUnknown(t *testing.T) {
	l, h, server := listen(t), hanging{got: make(chan struct{})}, grpc.NewServer()
	leasepb.RegisterLeaseServiceServer(server, h)
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-served })

	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-h.got; cancel() }()
	_, failed := dial(t, l.Addr().String(), wire.DialOptions()...).Renew(ctx, &leasepb.RenewRequest{})
	if err := wire.FromCall(failed, wire.Mutates); !errors.Is(err, lease.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
