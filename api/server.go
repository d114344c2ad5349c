package api

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/peerpb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

const (
	// defaultTimeout is the time that a call without a deadline is given.
	defaultTimeout = 30 * time.Second
	// minPingInterval is how often a client may ping. Ours do it every 10 s.
	minPingInterval = 5 * time.Second
	// connectTimeout bounds the handshake of a connection.
	connectTimeout = 10 * time.Second
	// maxStreams is how many calls one connection may have under way. With maxReadBytes
	// it bounds the memory that a connection can take up.
	maxStreams = 1000
	// maxPeerStreams is the same for a connection from another node, which carries what
	// all of its clients have it pass on: those who wait must not hold up the others.
	maxPeerStreams = lease.MaxWaiters + maxPeerBundled
	// maxPeerBundled is how many calls of one node may be under way in bundles.
	maxPeerBundled = 10 * maxStreams
)

// NewPublicServer returns the server of the API port: LeaseService, which passes on
// to the leader what this node cannot answer, ClusterService, h as grpc.health.v1,
// and reflection. Its metrics are registered with registry, which must not have
// them yet. Stop waits for the calls that are being answered.
//
// A stream of health, and a watch, last as long as their clients like: GracefulStop
// waits for them.
func NewPublicServer(n Node, h *Health, registry prometheus.Registerer) (*grpc.Server, error) {
	m, err := newMetrics(registry)
	if err != nil {
		return nil, err
	}
	out := newOutgoing(n.Watching.withDefaults().Bytes, n.Logger, m.watches.closed.Inc)
	if err := m.watches.registerBytes(registry, out.Used); err != nil {
		return nil, err
	}
	server, intercept := newServer(n, maxStreams, []grpc.ServerOption{grpc.Creds(lineCredentials{insecure.NewCredentials(), out})}, observer{logger: n.Logger, metrics: m})
	service := &leaseServer{node: n, mode: passesOn, watches: &m.watches, passed: newPassedOn(func() string { return n.Consensus.Leader().ID })}
	register(server, &leasepb.LeaseService_ServiceDesc, service)
	register(server, &leasepb.BundleService_ServiceDesc, newBundleServer(service, intercept, maxStreams))
	register(server, &leasepb.ClusterService_ServiceDesc, &clusterServer{node: n})
	healthpb.RegisterHealthServer(server, h.server)
	reflection.Register(server)
	return server, nil
}

// NewPeerServer returns the server of the peer port: LeaseService for what other
// nodes pass on, which is answered here or not at all, and PeerService. It has no
// metrics, since every request is counted where its client sent it.
func NewPeerServer(n Node) *grpc.Server {
	server, intercept := newServer(n, maxPeerStreams, nil)
	service := &leaseServer{node: n, mode: answersOnly}
	register(server, &leasepb.LeaseService_ServiceDesc, service)
	register(server, &leasepb.BundleService_ServiceDesc, newBundleServer(service, intercept, maxPeerBundled))
	register(server, &peerpb.PeerService_ServiceDesc, &peerServer{node: n})
	return server
}

// newServer returns a server without services, whose connections have streams calls
// under way at most, and what intercepts its unary calls. The observers see each call as
// its client does.
func newServer(n Node, streams uint32, options []grpc.ServerOption, observers ...observer) (*grpc.Server, grpc.UnaryServerInterceptor) {
	guard := guard{node: n}
	var unary []grpc.UnaryServerInterceptor
	var stream []grpc.StreamServerInterceptor
	for _, o := range observers {
		unary, stream = append(unary, o.unary), append(stream, o.stream)
	}
	intercept := inTurn(append(unary, guard.status, guard.recover, giveDeadline))
	return grpc.NewServer(append(options,
		grpc.UnaryInterceptor(intercept),
		grpc.ChainStreamInterceptor(append(stream, guard.statusStream, guard.recoverStream, openStream)...),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxConcurrentStreams(streams),
		grpc.MaxRecvMsgSize(maxReadBytes),
		grpc.MaxSendMsgSize(wire.MaxAnswerBytes),
		grpc.ConnectionTimeout(connectTimeout),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingInterval, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
		grpc.WaitForHandlers(true),
	)...), intercept
}
