// Package raftnet holds everything that touches hashicorp/raft: who a node is and
// how a cluster is founded, the one port between nodes, the transport, leadership
// and the cluster clock, the proposer, and the confirmation of reads.
//
// It does not know what is asked of a cluster from outside (package api) and takes
// its clock, listener, dialer and stores as parts, so that a simulation can put its
// own in their place.
//
// Three things here differ from the usual way to use hashicorp/raft, because the
// usual way is unsafe or stalls:
//
//   - The heartbeat fast path is switched off. It changes a node's term on the
//     connection's goroutine, and a leader that is paused in that moment stamps its
//     next entry with its successor's term: two logs then differ for ever.
//   - Nothing is pipelined, since a pipeline that fills up at the wrong moment stops
//     replication to one follower until a restart.
//   - VerifyLeader is no proof of leadership: it counts answers to requests that were
//     sent before it was called. It only prompts the heartbeats here; the transport
//     counts the answers (see Node.Confirm).
//
// Start reading at [Node], then [Port] for the network and [Found] for how a
// cluster begins.
package raftnet
