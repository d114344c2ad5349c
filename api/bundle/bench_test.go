package bundle_test

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasenode/leasenode/api/bundle"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
)

// BenchmarkBundle compares calls of so many callers, plain and bundled, over loopback. The
// server is in the same process and does next to nothing: what is measured is the way.
func BenchmarkBundle(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &script{bundle: answersUnseen}
	server := grpc.NewServer()
	leasepb.RegisterLeaseServiceServer(server, s)
	leasepb.RegisterBundleServiceServer(server, s)
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	defer func() { server.Stop(); <-served }()
	under, err := grpc.NewClient("passthrough:///"+l.Addr().String(), append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		b.Fatal(err)
	}
	conn := bundle.Over(under)
	defer conn.Close()
	for _, callers := range []int{1, 32, 256} {
		for name, over := range map[string]grpc.ClientConnInterface{"plain": under, "bundled": conn} {
			b.Run(fmt.Sprintf("%s/%d", name, callers), func(b *testing.B) { callFrom(b, callers, over) })
		}
	}
}

// answersUnseen is answers, without a note of what came.
func answersUnseen(_ *script, stream bidi) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return nil
		}
		if err := stream.Send(repliesTo(message.GetCalls())); err != nil {
			return err
		}
	}
}

// callFrom shares b.N calls out among callers.
func callFrom(b *testing.B, callers int, over grpc.ClientConnInterface) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var calling sync.WaitGroup
	b.ResetTimer()
	for range callers {
		calling.Go(func() {
			for left.Add(-1) >= 0 {
				if _, err := renew(b.Context(), over, "k"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	calling.Wait()
}
