package node

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet"
)

// core is what a node serves from. It is there once the node takes part in its
// cluster; until then the node is served too, and says what it is waiting for.
type core struct {
	identity *raftnet.Identity
	port     *raftnet.Port
	founders []Peer
	running  atomic.Pointer[running]
}

// running is the state machine and the part in the consensus.
type running struct {
	state *fsm.FSM
	raft  *raftnet.Node
}

// consensus is the core as the consensus that api wants.
type consensus struct{ *core }

var _ api.Consensus = consensus{}

// notYet is the error of a node that does not take part in its cluster yet.
func (c *core) notYet() error {
	if awaited := c.port.Awaited(); len(awaited) > 0 {
		return fmt.Errorf("the cluster is not founded yet, node %q is waiting for %s: %w", c.identity.ID, strings.Join(awaited, ", "), lease.ErrUnavailable)
	}
	return fmt.Errorf("node %q is starting: %w", c.identity.ID, lease.ErrUnavailable)
}

// elected reports whether this node is the leader for raft.
func (c *core) elected() bool {
	r := c.running.Load()
	return r != nil && r.raft.Elected()
}

func (c consensus) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	if r := c.running.Load(); r != nil {
		return r.raft.Propose(ctx, mutations)
	}
	return nil, c.notYet()
}

func (c consensus) Wait(ctx context.Context, poll lease.Poll) (lease.Answer, error) {
	if r := c.running.Load(); r != nil {
		return r.raft.Wait(ctx, poll)
	}
	return lease.Answer{}, c.notYet()
}

func (c consensus) ReleaseTo(ctx context.Context, m lease.Mutation, to string) (lease.Answer, error) {
	if r := c.running.Load(); r != nil {
		return r.raft.ReleaseTo(ctx, m, to)
	}
	return lease.Answer{}, c.notYet()
}

func (c consensus) Confirm(ctx context.Context) error {
	if r := c.running.Load(); r != nil {
		return r.raft.Confirm(ctx)
	}
	return c.notYet()
}

func (c consensus) Tick(ctx context.Context) error {
	if r := c.running.Load(); r != nil {
		return r.raft.Tick(ctx)
	}
	return c.notYet()
}

func (c consensus) Reading() (lease.Instant, bool) {
	if r := c.running.Load(); r != nil {
		return r.raft.Reading()
	}
	return 0, false
}

func (c consensus) Leads() bool {
	r := c.running.Load()
	return r != nil && r.raft.Leads()
}

func (c consensus) Leader() api.Leader {
	r := c.running.Load()
	if r == nil || r.raft.Leader() == "" {
		return api.Leader{}
	}
	id := r.raft.Leader()
	return api.Leader{ID: id, APIAddr: c.port.APIAddr(id)}
}

func (c consensus) Term() uint64 {
	if r := c.running.Load(); r != nil {
		return r.raft.Term()
	}
	return 0
}

func (c consensus) ClusterID() string {
	if c.running.Load() == nil { // the table may be being written
		return ""
	}
	return c.identity.ClusterID()
}

func (c consensus) Members() []api.Member {
	var members []api.Member
	r := c.running.Load()
	if r == nil {
		for _, p := range c.founders {
			members = append(members, api.Member{ID: p.ID, PeerAddr: p.Addr, Role: api.RoleVoter})
		}
		return members
	}
	for _, m := range r.raft.Members() {
		role := api.RoleVoter
		if !m.Voter {
			role = api.RoleLearner
		}
		members = append(members, api.Member{ID: m.ID, PeerAddr: m.Addr, Role: role})
	}
	return members
}

func (c consensus) Awaited() []string { return c.port.Awaited() }

// state is the core as the state that api wants.
type state struct{ *core }

var _ api.State = state{}

func (s state) Get(key string) (fsm.View, error) {
	if r := s.running.Load(); r != nil {
		return r.state.Get(key)
	}
	return fsm.View{}, s.notYet()
}

func (s state) List(q fsm.ListQuery) (fsm.ListView, error) {
	if r := s.running.Load(); r != nil {
		return r.state.List(q)
	}
	return fsm.ListView{}, s.notYet()
}

func (s state) History(q fsm.HistoryQuery) (fsm.HistoryView, error) {
	if r := s.running.Load(); r != nil {
		return r.state.History(q)
	}
	return fsm.HistoryView{}, s.notYet()
}

func (s state) Clock() (now, latestEnd lease.Instant) {
	if r := s.running.Load(); r != nil {
		return r.state.Clock()
	}
	return 0, 0
}

func (s state) AppliedIndex() uint64 {
	if r := s.running.Load(); r != nil {
		return r.state.AppliedIndex()
	}
	return 0
}

func (s state) Digests() []fsm.Digest {
	if r := s.running.Load(); r != nil {
		return r.state.Digests()
	}
	return nil
}

func (s state) Feed() *feed.Feed {
	if r := s.running.Load(); r != nil {
		return r.state.Feed()
	}
	return nil
}
