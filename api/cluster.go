package api

import (
	"context"
	"encoding/hex"
	"slices"
	"sync"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/peerpb"
	"github.com/leasenode/leasenode/api/wire"
)

// stateTimeout is how long a member may take to say how it is.
const stateTimeout = 500 * time.Millisecond

// peerServer is PeerService.
type peerServer struct {
	peerpb.UnimplementedPeerServiceServer
	node Node
}

// State implements peerpb.PeerServiceServer.
func (s *peerServer) State(context.Context, *peerpb.StateRequest) (*peerpb.StateResponse, error) {
	return s.node.state(), nil
}

// state tells how this node is.
func (n Node) state() *peerpb.StateResponse {
	own := Member{ID: n.ID, Role: RoleVoter}
	members := n.Consensus.Members()
	if i := slices.IndexFunc(members, func(m Member) bool { return m.ID == n.ID }); i >= 0 {
		own = members[i]
	}
	state := &peerpb.StateResponse{
		Id:           n.ID,
		ApiAddr:      n.APIAddr,
		Role:         string(n.roleOf(own)),
		Healthy:      n.Serves(),
		Term:         n.Consensus.Term(),
		AppliedIndex: n.State.AppliedIndex(),
	}
	for _, d := range n.State.Digests() {
		state.Digests = append(state.Digests, &peerpb.Digest{Index: d.Index, Sum: d.Sum[:]})
	}
	return state
}

// clusterServer is ClusterService.
type clusterServer struct {
	leasepb.UnimplementedClusterServiceServer
	node Node
}

// Status implements leasepb.ClusterServiceServer. Roles are as this node sees them,
// so that there is one leader at most; a member that does not answer in time, or
// under another name, or has not applied what the others had committed, is not healthy.
func (s *clusterServer) Status(ctx context.Context, _ *leasepb.StatusRequest) (*leasepb.StatusResponse, error) {
	members := s.node.Consensus.Members()
	states := s.node.Survey(ctx, members)
	now, _ := s.node.State.Clock()
	response := &leasepb.StatusResponse{
		ClusterId: s.node.Consensus.ClusterID(),
		Leader:    s.node.Consensus.Leader().ID,
		Term:      s.node.Consensus.Term(),
		NowMs:     now.Millis(),
		Awaited:   s.node.Consensus.Awaited(),
	}
	healthy := healthyOf(states)
	for i, m := range members {
		response.Members = append(response.Members, &leasepb.Member{
			Id:           m.ID,
			PeerAddr:     m.PeerAddr,
			ApiAddr:      states[i].GetApiAddr(),
			Role:         string(s.node.roleOf(m)),
			Healthy:      healthy[i] != nil,
			AppliedIndex: states[i].GetAppliedIndex(),
		})
	}
	response.DigestIndex, response.Digests = commonDigests(healthy)
	return response, nil
}

// Survey asks the members how they are and returns their states, in order; nil where
// there was no answer in time.
func (n Node) Survey(ctx context.Context, members []Member) []*peerpb.StateResponse {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	states := make([]*peerpb.StateResponse, len(members))
	var asked sync.WaitGroup
	for i, m := range members {
		if m.ID == n.ID {
			states[i] = n.state()
			continue
		}
		asked.Go(func() { states[i] = n.askOne(ctx, m.ID) })
	}
	asked.Wait()
	return states
}

func (n Node) askOne(ctx context.Context, id string) *peerpb.StateResponse {
	conn, err := n.Peers.Conn(id)
	if err != nil {
		return nil
	}
	state, err := peerpb.NewPeerServiceClient(conn).State(ctx, &peerpb.StateRequest{})
	if err != nil || state.GetId() != id {
		return nil
	}
	return state
}

// healthyOf returns the states of the members that are healthy, in their places, and nil
// in all others'. What a member says of itself is whether it can serve; that it is behind,
// only the others can tell.
func healthyOf(states []*peerpb.StateResponse) []*peerpb.StateResponse {
	var furthest uint64 // that any has applied: it was committed
	for _, state := range states {
		furthest = max(furthest, state.GetAppliedIndex())
	}
	healthy := make([]*peerpb.StateResponse, len(states))
	for i, state := range states {
		if state.GetHealthy() && !wire.Behind(state.GetAppliedIndex(), furthest) {
			healthy[i] = state
		}
	}
	return healthy
}

// commonDigests returns the highest index whose digest all healthy members have,
// and their digests there in hex; 0 and none if there is no such index. States that are
// nil are no members'.
func commonDigests(states []*peerpb.StateResponse) (uint64, map[string]string) {
	members := 0
	at := map[uint64]map[string]string{}
	for _, state := range states {
		if state == nil {
			continue
		}
		members++
		for _, d := range state.GetDigests() {
			if at[d.GetIndex()] == nil {
				at[d.GetIndex()] = map[string]string{}
			}
			at[d.GetIndex()][state.GetId()] = hex.EncodeToString(d.GetSum())
		}
	}
	var highest uint64
	for index, sums := range at {
		if len(sums) == members && index > highest {
			highest = index
		}
	}
	return highest, at[highest]
}
