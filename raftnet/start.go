package raftnet

import (
	"errors"
	"fmt"

	"github.com/hashicorp/raft"
)

// startRaft starts raft between its stores and its transport.
func (n *Node) startRaft() error {
	n.log = &pacedLog{LogStore: n.cfg.Stores.Logs}
	last, err := n.log.LastIndex()
	if err != nil {
		return errors.Join(fmt.Errorf("find the end of the log: %w", err), n.cfg.Transport.Close())
	}
	logs, err := raft.NewLogCache(entriesCached, n.log)
	if err != nil {
		return errors.Join(fmt.Errorf("cache the log: %w", err), n.cfg.Transport.Close())
	}
	n.gate = newGate(n.witness, last)
	n.raft, err = raft.NewRaft(n.raftConfig(), n.cfg.FSM, logs, n.cfg.Stores.Stable, n.cfg.Stores.Snapshots, n.gate)
	if err != nil {
		return errors.Join(fmt.Errorf("start raft: %w", err), n.gate.Close())
	}
	return nil
}
