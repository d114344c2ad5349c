package api

import (
	"context"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// Leader is the node to talk to; the zero value if none is known. APIAddr may be
// empty while ID is known.
type Leader = wire.Leader

// Role is what a member is for the others.
type Role string

// The roles. A configuration says [RoleVoter] or [RoleLearner]; to the outside a
// voter is the leader or a follower.
const (
	RoleVoter    Role = "voter"
	RoleLearner  Role = "learner"
	RoleLeader   Role = "leader"
	RoleFollower Role = "follower"
)

// Member is a member of the cluster's configuration.
type Member struct {
	ID       string
	PeerAddr string
	// Role is RoleVoter or RoleLearner.
	Role Role
}

// Consensus is what the server needs of the node's part in the cluster. All methods
// are safe for concurrent use; those without a context do not block.
type Consensus interface {
	// Propose has mutations, all of them within the limits, decided, if this node
	// leads. It returns an outcome for each, in order, whose error may be
	// [lease.ErrOutcomeUnknown] or [lease.ErrUnavailable] for some of them. The error
	// is for the whole call: [lease.ErrUnavailable] or [*lease.ExhaustedError] if
	// certainly none was done, [lease.ErrOutcomeUnknown] if any may have been.
	Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error)
	// Wait has an acquire decided as Propose does and, while the key is held, keeps it in
	// line for as long as the poll, which is within the limits, says. The
	// [*lease.HeldError] of one that is over has the place in line.
	Wait(ctx context.Context, poll lease.Poll) (lease.Answer, error)
	// ReleaseTo has a release decided as Propose does, and hands the key over to owner
	// to. If to does not wait for it, that is a [*lease.NotWaitingError], and nothing was
	// done.
	ReleaseTo(ctx context.Context, m lease.Mutation, to string) (lease.Answer, error)
	// Confirm proves that this node led after the call began, so that a read of the
	// state afterwards is linearizable. Without a proof it is [lease.ErrUnavailable].
	Confirm(ctx context.Context) error
	// Reading returns the leader's reading of the cluster clock, and false if this
	// node does not lead.
	Reading() (lease.Instant, bool)
	// Tick puts a reading, taken after the call began, into the log, and returns when
	// the state here has it.
	Tick(ctx context.Context) error
	// Leads reports whether this node leads and has opened its term. It is no proof.
	Leads() bool
	// Leader returns the leader as this node knows it, possibly itself.
	Leader() Leader
	// Term returns the present term.
	Term() uint64
	// ClusterID returns the cluster's id.
	ClusterID() string
	// Members returns the latest configuration; while the cluster is being founded, who
	// is to found it.
	Members() []Member
	// Awaited returns the nodes that are still awaited while the cluster is being
	// founded, and nothing afterwards.
	Awaited() []string
}

// State is this node's copy of the cluster's state, however far behind. All methods
// are safe for concurrent use. [fsm.FSM] is one.
type State interface {
	Get(key string) (fsm.View, error)
	List(q fsm.ListQuery) (fsm.ListView, error)
	History(q fsm.HistoryQuery) (fsm.HistoryView, error)
	// Clock returns the cluster clock, and the latest end any lease has had.
	Clock() (now, latestEnd lease.Instant)
	AppliedIndex() uint64
	// Digests returns the digests that are kept, in the order of their indexes.
	Digests() []fsm.Digest
	// Feed returns the events of this state; nil if there is none yet.
	Feed() *feed.Feed
}

// Peers reaches the other nodes over the peer port.
type Peers interface {
	// Conn returns the connection to the node of that id. It need not be up; it has to
	// be made with [wire.DialOptions], and belongs to the Peers. It is safe for
	// concurrent use. The error means that nothing can be sent.
	Conn(id string) (grpc.ClientConnInterface, error)
}

// Node is what the servers of one node are made of. All fields but Watching are needed.
type Node struct {
	// ID is the node's name, APIAddr where its clients are told to reach it.
	ID        string
	APIAddr   string
	Consensus Consensus
	State     State
	Peers     Peers
	Logger    hclog.Logger
	// Watching has the times of watches.
	Watching Watching
}

// Serves reports whether this node can serve linearizable requests: it leads, or
// knows another that does. A leader that has not opened its term can not.
func (n Node) Serves() bool {
	if n.Consensus.Leads() {
		return true
	}
	leader := n.Consensus.Leader()
	return leader.ID != "" && leader.ID != n.ID
}

// roleOf returns the role of m as this node sees it.
func (n Node) roleOf(m Member) Role {
	switch {
	case m.Role == RoleLearner:
		return RoleLearner
	case m.ID == n.Consensus.Leader().ID:
		return RoleLeader
	default:
		return RoleFollower
	}
}
