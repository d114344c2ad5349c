package api_test

import (
	"context"
	"net"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// startInBubble runs a leader with a feed whose connections are made of memory, so that
// the time of a synctest bubble goes on. It has to be called in one. Change is done before
// anything runs.
func startInBubble(t *testing.T, bounds feed.Bounds, times api.Watching, change func(*fakeNode)) *bubbled {
	t.Helper()
	f := &fakeNode{id: "n1", now: lease.InstantOfMillis(1_000_000), reading: lease.InstantOfMillis(1_000_000), leads: true, leader: api.Leader{ID: "n1", APIAddr: "n1:7201"}, peers: map[string]grpc.ClientConnInterface{}}
	f.feed = feed.Open(feedState{f}, bounds)
	change(f)
	node := api.Node{ID: f.id, APIAddr: "n1:7201", Consensus: f, State: f, Peers: f, Logger: hclog.NewNullLogger(), Watching: times}
	n := &bubbled{running: &running{fakeNode: f, registry: prometheus.NewRegistry()}, t: t, listener: bufconn.Listen(256 << 10)}
	server, err := api.NewPublicServer(node, api.NewHealth(node), n.registry)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(n.listener) }()
	t.Cleanup(func() { server.Stop(); <-served; f.feed.Close() })
	return n
}

type bubbled struct {
	*running
	t        *testing.T
	listener *bufconn.Listener
}

// client returns a client on a connection of its own, with windows of 64 KiB.
func (n *bubbled) client() (leasepb.LeaseServiceClient, *grpc.ClientConn) {
	n.t.Helper()
	conn, err := grpc.NewClient("passthrough:///n1", append(
		wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(64<<10),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return n.listener.DialContext(ctx) }),
	)...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	return leasepb.NewLeaseServiceClient(conn), conn
}

// begin begins a watch that the caller may leave unread.
func (n *bubbled) begin(client leasepb.LeaseServiceClient, req *leasepb.WatchRequest) (grpc.ServerStreamingClient[leasepb.WatchResponse], context.CancelFunc) {
	n.t.Helper()
	ctx, cancel := context.WithCancel(n.t.Context())
	n.t.Cleanup(cancel)
	stream, err := client.Watch(ctx, req)
	if err != nil {
		n.t.Fatal(err)
	}
	return stream, cancel
}
