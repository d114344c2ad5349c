package holder_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serveCall makes the answer that a node would give.
type serveCall func() (any, error)

// backend is a node as a client sees one: a real gRPC server on loopback, around a
// store in memory that it may share with others.
type backend struct {
	leasepb.UnimplementedLeaseServiceServer
	leasepb.UnimplementedClusterServiceServer
	id     string
	addr   string
	store  lease.Store
	server *grpc.Server

	mu     sync.Mutex
	leader wire.Leader
	calls  int
	ids    []string // the request ids of the acquires
	// fault stands between the network and the node: it gets the number of the call,
	// from 1, and may serve it, or not, and answer what it likes. Nil serves.
	fault func(ctx context.Context, n int, serve serveCall) (any, error)
}

// startNode runs a node that names itself as the leader.
func startNode(t *testing.T, id string, store lease.Store) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{id: id, addr: l.Addr().String(), store: store}
	b.leader = wire.Leader{ID: id, APIAddr: b.addr}
	b.server = grpc.NewServer(grpc.UnaryInterceptor(b.intercept), grpc.WaitForHandlers(true), grpc.MaxConcurrentStreams(1000))
	leasepb.RegisterLeaseServiceServer(b.server, b)
	leasepb.RegisterClusterServiceServer(b.server, b)
	served := make(chan struct{})
	go func() { defer close(served); _ = b.server.Serve(l) }()
	t.Cleanup(func() { b.server.Stop(); <-served })
	return b
}

// startCluster runs n nodes on one store, the first of which leads.
func startCluster(t *testing.T, n int) (nodes []*backend, clock *leasetest.ManualClock) {
	t.Helper()
	clock = leasetest.NewManualClock(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	store := leasetest.NewMemory(clock)
	for i := range n {
		nodes = append(nodes, startNode(t, string(rune('a'+i)), store))
		nodes[i].leader = nodes[0].leader
	}
	return nodes, clock
}

func (b *backend) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *backend) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *backend) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	b.mu.Lock()
	b.calls++
	if r, ok := req.(*leasepb.AcquireRequest); ok {
		b.ids = append(b.ids, string(r.GetRequestId()))
	}
	n, fault := b.calls, b.fault
	b.mu.Unlock()
	serve := func() (any, error) {
		resp, err := handle(ctx, req)
		if err != nil {
			return nil, wire.StatusOf(err, b.known()).Err()
		}
		return resp, nil
	}
	if fault == nil {
		return serve()
	}
	return fault(ctx, n, serve)
}

func (b *backend) known() wire.Leader {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leader
}

func (b *backend) leaderProto() *leasepb.Leader { return wire.LeaderToProto(b.known()) }

func (b *backend) Acquire(ctx context.Context, p *leasepb.AcquireRequest) (*leasepb.AcquireResponse, error) {
	poll, err := wire.PollFromProto(p)
	if err != nil {
		return nil, err
	}
	m := poll.Mutation
	a, err := b.store.Acquire(ctx, lease.AcquireRequest{Key: m.Key, Owner: m.Owner, TTL: m.TTL, RequestID: m.RequestID, Attributes: m.Attributes, Wait: poll.Wait})
	return &leasepb.AcquireResponse{Answer: wire.MutationAnswerToProto(a), Leader: b.leaderProto()}, err
}

func (b *backend) Renew(ctx context.Context, p *leasepb.RenewRequest) (*leasepb.RenewResponse, error) {
	m, err := wire.RenewFromProto(p)
	if err != nil {
		return nil, err
	}
	a, err := b.store.Renew(ctx, lease.RenewRequest{Key: m.Key, Owner: m.Owner, Epoch: m.Epoch, TTL: m.TTL})
	return &leasepb.RenewResponse{Answer: wire.MutationAnswerToProto(a), Leader: b.leaderProto()}, err
}

func (b *backend) BatchRenew(ctx context.Context, p *leasepb.BatchRenewRequest) (*leasepb.BatchRenewResponse, error) {
	reqs := make([]lease.RenewRequest, len(p.GetRenewals()))
	for i, r := range p.GetRenewals() {
		reqs[i] = lease.RenewRequest{Key: string(r.GetKey()), Owner: string(r.GetOwner()), Epoch: r.GetEpoch(), TTL: time.Duration(r.GetTtlMs()) * time.Millisecond}
	}
	outcomes, err := b.store.BatchRenew(ctx, reqs)
	resp := &leasepb.BatchRenewResponse{Leader: b.leaderProto()}
	for _, o := range outcomes {
		if o.Err != nil {
			resp.Results = append(resp.Results, &leasepb.RenewResult{Result: &leasepb.RenewResult_Failure{Failure: wire.FailureToProto(o.Err)}})
			continue
		}
		resp.Results = append(resp.Results, &leasepb.RenewResult{Result: &leasepb.RenewResult_Answer{Answer: wire.MutationAnswerToProto(o.Answer)}})
	}
	return resp, err
}

func (b *backend) Release(ctx context.Context, p *leasepb.ReleaseRequest) (*leasepb.ReleaseResponse, error) {
	m, err := wire.ReleaseFromProto(p)
	if err != nil {
		return nil, err
	}
	a, err := b.store.Release(ctx, lease.ReleaseRequest{Key: m.Key, Owner: m.Owner, Epoch: m.Epoch, To: string(p.GetTo())})
	return &leasepb.ReleaseResponse{Answer: wire.MutationAnswerToProto(a), Leader: b.leaderProto()}, err
}

func (b *backend) Forget(ctx context.Context, p *leasepb.ForgetRequest) (*leasepb.ForgetResponse, error) {
	m, err := wire.ForgetFromProto(p)
	if err != nil {
		return nil, err
	}
	a, err := b.store.Forget(ctx, lease.ForgetRequest{Key: m.Key, Owner: m.Owner, Epoch: m.Epoch})
	return &leasepb.ForgetResponse{Answer: wire.MutationAnswerToProto(a), Leader: b.leaderProto()}, err
}

func (b *backend) Get(ctx context.Context, p *leasepb.GetRequest) (*leasepb.GetResponse, error) {
	r, err := wire.GetFromProto(p)
	if err != nil {
		return nil, err
	}
	a, err := b.store.Get(ctx, r)
	return &leasepb.GetResponse{Answer: wire.ReadAnswerToProto(a), Leader: b.leaderProto()}, err
}

func (b *backend) List(ctx context.Context, p *leasepb.ListRequest) (*leasepb.ListResponse, error) {
	r, err := wire.ListFromProto(p)
	if err != nil {
		return nil, err
	}
	page, err := b.store.List(ctx, r)
	return wire.ListPageToProto(page), err
}

func (b *backend) History(ctx context.Context, p *leasepb.HistoryRequest) (*leasepb.HistoryResponse, error) {
	r, err := wire.HistoryFromProto(p)
	if err != nil {
		return nil, err
	}
	page, err := b.store.History(ctx, r)
	return wire.HistoryPageToProto(page), err
}

func (b *backend) Status(context.Context, *leasepb.StatusRequest) (*leasepb.StatusResponse, error) {
	return &leasepb.StatusResponse{
		ClusterId: "c", Leader: b.known().ID, Term: 3, NowMs: 5, DigestIndex: 8, Digests: map[string]string{b.id: "ff"},
		Members: []*leasepb.Member{{Id: b.id, PeerAddr: "p:1", ApiAddr: b.addr, Role: "leader", Healthy: true, AppliedIndex: 9}},
	}, nil
}

func dial(t *testing.T, nodes ...*backend) *holder.Client {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.addr)
	}
	return dialAddrs(t, addrs...)
}

func dialAddrs(t *testing.T, addrs ...string) *holder.Client {
	t.Helper()
	client, err := holder.Dial(addrs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// long is enough for anything that works.
const long = 30 * time.Second

var acquireK = lease.AcquireRequest{Key: "k", Owner: "o", TTL: time.Second}

func acquired(t *testing.T, c *holder.Client, req lease.AcquireRequest) lease.Answer {
	t.Helper()
	a, err := c.Acquire(within(t, long), req)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// grants counts the acquires in the history of k.
func grants(t *testing.T, c *holder.Client) int {
	t.Helper()
	page, err := c.History(within(t, long), lease.HistoryRequest{Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range page.Entries {
		if e.Op == lease.OpAcquire {
			n++
		}
	}
	return n
}
