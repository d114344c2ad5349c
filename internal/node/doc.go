// Package node puts one node together: the state machine (fsm), its part in the
// consensus (raftnet) and what it serves (api). What the node stands on, its clock,
// network, transport and disk, is given to it as [Parts], so that a simulation in
// one process, or a chaos harness, can put its own there.
//
// A node that meets something it must not go on with, an entry that it does not
// understand or a state that differs from the other nodes', stops itself: its
// channel Done is closed, and Err says why.
package node
