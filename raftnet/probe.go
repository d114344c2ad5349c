package raftnet

import (
	"slices"
	"strconv"

	"github.com/hashicorp/raft"
)

// What an investigation comes to; the results in leasenode_failover_probes_total.
type probeResult string

const (
	// probeAlive and probeUnclear: the leader's connections have closed, but it answers
	// that it leads, or nothing can be said.
	probeAlive   probeResult = "alive"
	probeUnclear probeResult = "unclear"
	// probeSuspected: it looks gone from here. One of the following comes after.
	probeSuspected probeResult = "suspected"
	probeDenied    probeResult = "denied"     // no majority agrees
	probeStoodDown probeResult = "stood_down" // another stands, or it is back
	probeWon       probeResult = "won"        // this node stood and leads
	probeLost      probeResult = "lost"       // this node stood and was not elected
)

var probeResults = []probeResult{probeAlive, probeUnclear, probeSuspected, probeDenied, probeStoodDown, probeWon, probeLost}

// tell counts and logs a result.
func (p *prober) tell(s reigning, result probeResult, reason string) {
	p.node.cfg.Metrics.probed(result)
	log, about := p.node.cfg.Logger, []any{"leader", s.ID, "term", s.Term}
	switch result {
	case probeSuspected:
		log.Info("the leader's process seems to be gone: its connections are closed, and it refuses new ones or does not lead", about...)
	case probeDenied:
		log.Warn("this node cannot reach the leader, but no majority of the nodes finds it gone: they go on with it", about...)
	case probeStoodDown:
		log.Info("this node does not take the place of the leader that is gone", append(about, "reason", reason)...)
	case probeWon:
		log.Info("this node takes the place of the leader that is gone", about...)
	case probeLost:
		log.Info("this node stood in the place of the leader that is gone, and was not elected", about...)
	default:
		log.Debug("the leader's connections are closed", append(about, "it is", string(result))...)
	}
}

// votes reports whether this node has a vote in the latest configuration.
func (n *Node) votes() bool { return slices.Contains(n.voters(), raft.ServerID(n.cfg.ID)) }

// claim returns this node's own.
func (n *Node) claim() claim {
	stats := n.raft.Stats() // raft tells its last entry's term nowhere else
	number := func(name string) uint64 {
		v, _ := strconv.ParseUint(stats[name], 10, 64)
		return v
	}
	c := claim{id: n.cfg.ID, lastTerm: number("last_log_term"), last: number("last_log_index")}
	if snapshot := number("last_snapshot_index"); snapshot > c.last {
		c.lastTerm, c.last = number("last_snapshot_term"), snapshot
	}
	return c
}

// header is that of a message from this node.
func (n *Node) header() raft.RPCHeader {
	id := raft.ServerID(n.cfg.ID)
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: n.witness.EncodePeer(id, n.witness.LocalAddr())}
}
