package node

import (
	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/raftnet"
)

// consensus is raftnet's node as api wants it.
type consensus struct {
	*raftnet.Node
	port      *raftnet.Port
	clusterID string
}

func (c *consensus) ClusterID() string { return c.clusterID }

func (c *consensus) Leader() api.Leader {
	id := c.Node.Leader()
	if id == "" {
		return api.Leader{}
	}
	return api.Leader{ID: id, APIAddr: c.port.APIAddr(id)}
}

func (c *consensus) Members() []api.Member {
	var members []api.Member
	for _, m := range c.Node.Members() {
		role := api.RoleVoter
		if !m.Voter {
			role = api.RoleLearner
		}
		members = append(members, api.Member{ID: m.ID, PeerAddr: m.Addr, Role: role})
	}
	return members
}
