package api_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/bundle"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeNode is the consensus, the state and the peers of one node, all told by the
// test; the gRPC servers around it are the real ones.
type fakeNode struct {
	id string

	mu       sync.Mutex
	leads    bool
	leader   api.Leader
	members  []api.Member
	reading  lease.Instant
	propose  func(ctx context.Context, ms []lease.Mutation) ([]lease.Outcome, error)
	confirm  func(ctx context.Context) error
	tick     func(ctx context.Context) error
	wait     func(ctx context.Context, poll lease.Poll) (lease.Answer, error)
	handOver func(ctx context.Context, m lease.Mutation, to string) (lease.Answer, error)
	ticks    int
	proposed []lease.Mutation

	now     lease.Instant
	records []lease.Record // in the order of their keys
	entries []lease.Entry
	digests []fsm.Digest
	feed    *feed.Feed
	listed  func() // called after each page
	named   func() // called once, when the leader is asked for
	applied uint64

	peers map[string]grpc.ClientConnInterface
	asked []string // the peers to which a connection was wanted
}

// locked runs change with the node's lock held.
func (f *fakeNode) locked(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *fakeNode) Propose(ctx context.Context, ms []lease.Mutation) ([]lease.Outcome, error) {
	f.mu.Lock()
	f.proposed = append(f.proposed, ms...)
	propose, now := f.propose, f.now
	f.mu.Unlock()
	if propose != nil {
		return propose(ctx, ms)
	}
	outcomes := make([]lease.Outcome, len(ms))
	for i, m := range ms {
		outcomes[i].Answer = lease.Answer{Record: lease.Record{Key: m.Key, Owner: m.Owner, Epoch: max(m.Epoch, 1), LeaseUntil: now.Add(m.TTL), Attributes: m.Attributes}, Now: now, Remaining: m.TTL, Changed: true}
	}
	return outcomes, nil
}

func (f *fakeNode) Wait(ctx context.Context, poll lease.Poll) (lease.Answer, error) {
	return f.wait(ctx, poll)
}

func (f *fakeNode) ReleaseTo(ctx context.Context, m lease.Mutation, to string) (lease.Answer, error) {
	return f.handOver(ctx, m, to)
}

func (f *fakeNode) Confirm(ctx context.Context) error {
	f.mu.Lock()
	confirm := f.confirm
	f.mu.Unlock()
	if confirm != nil {
		return confirm(ctx)
	}
	return nil
}

func (f *fakeNode) Tick(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ticks++
	if f.tick != nil {
		return f.tick(ctx)
	}
	f.now = max(f.now, f.reading)
	return nil
}

func (f *fakeNode) Reading() (lease.Instant, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reading, f.leads
}

func (f *fakeNode) Leads() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.leads
}

func (f *fakeNode) Leader() api.Leader {
	f.mu.Lock()
	if named := f.named; named != nil {
		f.named = nil
		f.mu.Unlock()
		named()
		f.mu.Lock()
	}
	defer f.mu.Unlock()
	return f.leader
}

func (f *fakeNode) Awaited() []string { return nil }

func (f *fakeNode) Members() []api.Member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members
}

func (f *fakeNode) Term() uint64      { return 7 }
func (f *fakeNode) ClusterID() string { return "c-1" }

func (f *fakeNode) Get(key string) (fsm.View, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.records {
		if r.Key == key {
			return fsm.View{Record: r, Now: f.now}, nil
		}
	}
	return fsm.View{Record: lease.Record{Key: key}, Now: f.now}, nil
}

func (f *fakeNode) List(q fsm.ListQuery) (fsm.ListView, error) {
	f.mu.Lock()
	if f.listed != nil {
		defer f.listed()
	}
	defer f.mu.Unlock()
	view := fsm.ListView{Now: f.now, Next: q.After, Index: f.applied}
	for _, r := range f.records {
		switch {
		case r.Key <= q.After || !strings.HasPrefix(r.Key, q.Prefix) || (q.Selection == lease.HeldOnly && r.OverAt(f.now)):
			continue
		case len(view.Records) == q.Limit:
			view.More = true
			return view, nil
		}
		view.Records, view.Next = append(view.Records, r), r.Key
	}
	return view, nil
}

func (f *fakeNode) History(q fsm.HistoryQuery) (fsm.HistoryView, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	view := fsm.HistoryView{Next: q.After}
	for _, e := range f.entries {
		switch {
		case e.Index <= q.After.Index || (q.Key != "" && e.Key != q.Key):
			continue
		case len(view.Entries) == q.Limit:
			view.More = true
			return view, nil
		}
		view.Entries, view.Next = append(view.Entries, e), fsm.Position{Index: e.Index}
	}
	return view, nil
}

func (f *fakeNode) Clock() (now, latestEnd lease.Instant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now, 0
}

func (f *fakeNode) AppliedIndex() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied
}

func (f *fakeNode) Digests() []fsm.Digest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.digests)
}

func (f *fakeNode) Feed() *feed.Feed { return f.feed }

func (f *fakeNode) Conn(id string) (grpc.ClientConnInterface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, id)
	if conn, ok := f.peers[id]; ok {
		return conn, nil
	}
	return nil, errors.New("no address")
}

// running is a node's two servers, and clients of them.
type running struct {
	*fakeNode
	leases   leasepb.LeaseServiceClient // over bundles, as clients of ours do it
	public   *grpc.ClientConn
	peer     *grpc.ClientConn
	peerStop func() // ends the peer server and its connections at once
	health   *api.Health
	registry *prometheus.Registry
}

// start runs a node that knows of nobody, with a clock at one million milliseconds.
func start(t *testing.T, id string) *running {
	t.Helper()
	return startWith(t, id, func(*fakeNode, *api.Node) {})
}

// startWith is start, with change done before anything runs.
func startWith(t *testing.T, id string, change func(*fakeNode, *api.Node)) *running {
	t.Helper()
	f := &fakeNode{id: id, applied: 42, now: lease.InstantOfMillis(1_000_000), reading: lease.InstantOfMillis(1_000_000), peers: map[string]grpc.ClientConnInterface{}}
	f.members = []api.Member{{ID: "n1", PeerAddr: "p1:1", Role: api.RoleVoter}, {ID: "n2", PeerAddr: "p2:1", Role: api.RoleVoter}, {ID: "n3", PeerAddr: "p3:1", Role: api.RoleLearner}}
	node := api.Node{ID: id, APIAddr: id + ":7201", Consensus: f, State: f, Peers: f, Logger: hclog.NewNullLogger()}
	change(f, &node)
	r := &running{fakeNode: f, health: api.NewHealth(node), registry: prometheus.NewRegistry()}
	public, err := api.NewPublicServer(node, r.health, r.registry)
	if err != nil {
		t.Fatal(err)
	}
	peer := api.NewPeerServer(node)
	r.peerStop = peer.Stop
	r.public, r.peer = serve(t, public), serve(t, peer)
	r.leases = leasepb.NewLeaseServiceClient(bundled(t, r.public))
	r.health.Start()
	t.Cleanup(r.health.Close)
	return r
}

// serve runs server on a loopback port until the test ends, and connects to it.
func serve(t *testing.T, server *grpc.Server) *grpc.ClientConn {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-served })
	return connect(t, l.Addr().String())
}

// connect makes a connection to addr as nodes have it to each other.
func connect(t *testing.T, addr string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append(append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials())), options...)
	conn, err := grpc.NewClient("passthrough:///"+addr, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// bundled returns a connection to where conn goes, of which calls travel in bundles.
func bundled(t *testing.T, conn *grpc.ClientConn) *bundle.Conn {
	t.Helper()
	b := bundle.Over(connect(t, strings.TrimPrefix(conn.Target(), "passthrough:///")))
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// startLeader runs a node that leads.
func startLeader(t *testing.T) *running {
	n := start(t, "n1")
	n.locked(func() { n.leads, n.leader = true, api.Leader{ID: "n1", APIAddr: "n1:7201"} })
	return n
}

// startPair runs a leader, n1, and a follower, n2, that knows it.
func startPair(t *testing.T) (leader, follower *running) {
	leader, follower = startLeader(t), start(t, "n2")
	follower.locked(func() {
		follower.leader, follower.peers["n1"] = api.Leader{ID: "n1", APIAddr: "n1:7201"}, bundled(t, leader.peer)
	})
	return leader, follower
}

// within is a context that lasts long enough for anything that works.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func at(ms int64) lease.Instant { return lease.InstantOfMillis(ms) }

func renewal(key string) *leasepb.RenewRequest {
	return &leasepb.RenewRequest{Key: []byte(key), Owner: []byte("o"), Epoch: 1, TtlMs: 1000}
}

// wantCode checks what the failure of a call stands for.
func wantCode(t *testing.T, err error, effect wire.Effect, want lease.Code) {
	t.Helper()
	if got := lease.CodeOf(wire.FromCall(err, effect)); got != want || !wire.Answered(err) {
		t.Errorf("got %q (%v), want %s", got, err, want)
	}
}
