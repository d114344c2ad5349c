package raftnet_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet"
)

// The tests of this file's kind run whole clusters in a synctest bubble: real nodes
// and real state machines, on an in-memory network whose directed links can be cut
// and held, and on in-memory logs.

type link struct{ from, to raft.ServerID }

type network struct {
	mu   sync.Mutex
	cut  map[link]bool
	held map[link]chan struct{}
}

func newNetwork() *network {
	return &network{cut: map[link]bool{}, held: map[link]chan struct{}{}}
}

// pass reports whether a message gets from one node to another, after it was held.
func (n *network) pass(l link) bool {
	n.mu.Lock()
	held := n.held[l]
	n.mu.Unlock()
	if held != nil {
		<-held
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.cut[l]
}

// hold keeps all messages of the links until the returned function is called.
func (n *network) hold(links ...link) (release func()) {
	gate := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range links {
		n.held[l] = gate
	}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, l := range links {
			delete(n.held, l)
		}
		close(gate)
	}
}

var errCut = errors.New("the link is cut")

// memTransport is raft's in-memory transport behind the network's links.
type memTransport struct {
	*raft.InmemTransport
	id  raft.ServerID
	net *network
}

func (t *memTransport) over(to raft.ServerID, call func() error) error {
	if !t.net.pass(link{t.id, to}) {
		time.Sleep(200 * time.Millisecond)
		return errCut
	}
	err := call()
	if !t.net.pass(link{to, t.id}) {
		time.Sleep(200 * time.Millisecond)
		return errCut
	}
	return err
}

func (t *memTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	return t.over(id, func() error { return t.InmemTransport.AppendEntries(id, target, args, resp) })
}

func (t *memTransport) RequestVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	return t.over(id, func() error { return t.InmemTransport.RequestVote(id, target, args, resp) })
}

func (t *memTransport) RequestPreVote(id raft.ServerID, target raft.ServerAddress, args *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	return t.over(id, func() error { return t.InmemTransport.RequestPreVote(id, target, args, resp) })
}

func (t *memTransport) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, args *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	return t.over(id, func() error { return t.InmemTransport.InstallSnapshot(id, target, args, resp, data) })
}

func (t *memTransport) TimeoutNow(id raft.ServerID, target raft.ServerAddress, args *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	return t.over(id, func() error { return t.InmemTransport.TimeoutNow(id, target, args, resp) })
}

// slowLog is a log whose writes can be made to hang.
type slowLog struct {
	raft.LogStore
	mu   sync.Mutex
	gate chan struct{}
}

func (s *slowLog) StoreLogs(logs []*raft.Log) error {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return s.LogStore.StoreLogs(logs)
}

func (s *slowLog) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

// hang makes writes wait until the returned function is called.
func (s *slowLog) hang() (resume func()) {
	gate := make(chan struct{})
	s.mu.Lock()
	s.gate = gate
	s.mu.Unlock()
	return func() {
		s.mu.Lock()
		s.gate = nil
		s.mu.Unlock()
		close(gate)
	}
}

type member struct {
	*raftnet.Node
	id       raft.ServerID
	fsm      *fsm.FSM
	log      *slowLog
	abstains *atomic.Bool
	registry *prometheus.Registry
	net      raftnet.Transport // what it sends by
}

type cluster struct {
	t       *testing.T
	net     *network
	sights  *sights
	members []*member
}

// openCluster starts n nodes, n0 and so on. Close it inside the bubble.
func openCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{t: t, net: newNetwork(), sights: newSights()}
	var table raftnet.Table
	transports := make([]*memTransport, n)
	for i := range n {
		id := fmt.Sprintf("n%d", i)
		table = append(table, raftnet.Member{ID: id, Addr: id, Incarnation: id})
		_, inner := raft.NewInmemTransport(raft.ServerAddress(id))
		transports[i] = &memTransport{InmemTransport: inner, id: raft.ServerID(id), net: c.net}
	}
	for _, a := range transports {
		for _, b := range transports {
			if a != b {
				a.Connect(raft.ServerAddress(b.id), b.InmemTransport)
			}
		}
	}
	for i, transport := range transports {
		c.members = append(c.members, c.openMember(table, table[i].ID, transport))
	}
	return c
}

func (c *cluster) openMember(table raftnet.Table, id string, transport raftnet.Transport) *member {
	t := c.t
	t.Helper()
	dir := t.TempDir()
	identity, err := raftnet.OpenIdentity(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := identity.SetTable(table); err != nil {
		t.Fatal(err)
	}
	store := raft.NewInmemStore()
	log := &slowLog{LogStore: store}
	stores := raftnet.Stores{Logs: log, Stable: store, Snapshots: raft.NewInmemSnapshotStore()}
	if err := raftnet.Begin(identity, stores); err != nil {
		t.Fatal(err)
	}
	state, err := fsm.Open(fsm.Config{Dir: dir, Logger: hclog.NewNullLogger(), OnFailure: func(err error) { t.Errorf("%s: %v", id, err) }})
	if err != nil {
		t.Fatal(err)
	}
	m := &member{id: raft.ServerID(id), fsm: state, log: log, abstains: &atomic.Bool{}, registry: prometheus.NewRegistry(), net: transport}
	m.Node, err = raftnet.Open(raftnet.Config{
		ID: id, Settings: fsm.DefaultSettings(), FSM: state, Transport: transport, Neighbours: c.sights.of(m.id), Stores: stores, Abstain: m.abstains.Load, Clock: lease.NewSystemClock(),
		Tuning: raftnet.DefaultTuning(), Logger: hclog.NewNullLogger(), Metrics: raftnet.NewMetrics(m.registry),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (c *cluster) close() {
	for _, m := range c.members {
		if err := m.Close(); err != nil {
			c.t.Error(err)
		}
		if err := m.fsm.Close(); err != nil {
			c.t.Error(err)
		}
	}
}

// leader waits for a node, other than those given, that leads an opened term.
func (c *cluster) leader(except ...*member) *member {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		for _, m := range c.members {
			if m.Leads() && !contains(except, m) {
				return m
			}
		}
	}
	c.t.Fatal("no leader within a minute")
	return nil
}

func contains(ms []*member, m *member) bool {
	for _, x := range ms {
		if x == m {
			return true
		}
	}
	return false
}

// isolate cuts all links of m, both ways; heal mends every link.
func (c *cluster) isolate(m *member) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for _, o := range c.members {
		if o != m {
			c.net.cut[link{m.id, o.id}], c.net.cut[link{o.id, m.id}] = true, true
		}
	}
}

func (c *cluster) heal() {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	clear(c.net.cut)
}

// do proposes one mutation at m.
func (m *member) do(mutation lease.Mutation) (lease.Answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	outcomes, err := m.Propose(ctx, []lease.Mutation{mutation})
	if err != nil {
		return lease.Answer{}, err
	}
	return outcomes[0].Answer, outcomes[0].Err
}

func acquire(key, owner string, ttl time.Duration) lease.Mutation {
	return lease.AcquireRequest{Key: key, Owner: owner, TTL: ttl}.Mutation()
}
