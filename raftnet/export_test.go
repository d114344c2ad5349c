package raftnet

// NewWitness is the transport as raft gets it.
func NewWitness(t Transport) Transport { return newWitness(t, func() bool { return false }) }
