package raftnet

import "github.com/hashicorp/raft"

// Raft is the raft below n.
func Raft(n *Node) *raft.Raft { return n.raft }

// NewWitness is the transport as raft gets it.
func NewWitness(t Transport) Transport { return newWitness(t, func() bool { return false }) }
