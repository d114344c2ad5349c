package holder

import (
	"context"
	"fmt"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// Status describes a cluster as one node sees it.
type Status struct {
	ClusterID string
	// Leader is the leader's id, or "" if the node knows none.
	Leader  string
	Term    uint64
	Members []Member
	// DigestIndex is the highest log index at which every healthy member's digest of
	// its state is known; 0 if there is none. Digests are by member, in hex, and have to
	// be equal.
	DigestIndex uint64
	Digests     map[string]string
	// Now is the cluster clock as the node has it, in whole milliseconds: not a time of
	// day, and as far behind as the node's state is.
	Now lease.Instant
	// Awaited are the nodes that are still awaited while the cluster is being founded.
	Awaited []string
}

// Member is one node of a cluster.
type Member struct {
	ID       string
	PeerAddr string
	// APIAddr is empty if the member could not be asked.
	APIAddr string
	// Role is leader, follower or learner.
	Role string
	// Healthy says that the member answered, can serve, and has applied what the cluster
	// had committed.
	Healthy bool
	// AppliedIndex is the last log entry that the member has applied.
	AppliedIndex uint64
}

// Behind reports whether a member of s has answered, and has not applied what the cluster
// had committed, as after a start: then it is not healthy.
func (s Status) Behind(m Member) bool {
	var furthest uint64
	for _, other := range s.Members {
		furthest = max(furthest, other.AppliedIndex)
	}
	return m.APIAddr != "" && wire.Behind(m.AppliedIndex, furthest)
}

// Status describes the cluster as the first endpoint that answers sees it. It needs no
// leader.
func (c *Client) Status(ctx context.Context) (Status, error) {
	p, err := callAny(ctx, c.conns, func(ctx context.Context, conn grpc.ClientConnInterface) (*leasepb.StatusResponse, error) {
		return leasepb.NewClusterServiceClient(conn).Status(ctx, &leasepb.StatusRequest{})
	})
	if err != nil {
		return Status{}, fmt.Errorf("status: %w", err)
	}
	status := Status{
		ClusterID: p.GetClusterId(), Leader: p.GetLeader(), Term: p.GetTerm(),
		DigestIndex: p.GetDigestIndex(), Digests: p.GetDigests(), Now: lease.InstantOfMillis(p.GetNowMs()), Awaited: p.GetAwaited(),
	}
	for _, m := range p.GetMembers() {
		status.Members = append(status.Members, Member{
			ID: m.GetId(), PeerAddr: m.GetPeerAddr(), APIAddr: m.GetApiAddr(), Role: m.GetRole(),
			Healthy: m.GetHealthy(), AppliedIndex: m.GetAppliedIndex(),
		})
	}
	return status, nil
}
