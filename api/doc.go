// Package api serves the public interface of a node, and what nodes ask each other
// of it: see leasepb/lease.proto, which is its reference manual.
//
// It takes consensus, state and connections to the other nodes as interfaces
// ([Consensus], [State], [Peers]) and knows nothing of how they are made. A request
// travels like this:
//
//   - What is outside a limit is refused before anything else, on any node.
//   - On the leader a mutation is proposed, and a linearizable read confirms
//     leadership and then reads the state.
//   - Any other node passes the request on to the leader as it came, once, over the
//     peer port, and the answer back. The server of the peer port
//     ([NewPeerServer]) never passes anything on, so there are no loops, however
//     wrong two nodes are about who leads.
//   - A stale read is answered by whoever is asked.
//   - A call in a bundle takes the same way (see BundleService, and package bundle).
//
// Nothing is tried twice here: a mutation that was sent and not heard of is
// [lease.ErrOutcomeUnknown], one that was not sent is [lease.ErrUnavailable]. To try
// again is for the client, who knows what is safe.
//
// Time: what a read says remains is counted on the leader's reading of the cluster
// clock, but that a lease is over, only the log's clock can say: where the two
// differ, the leader has its reading put into the log first.
//
// The gRPC servers come fully set up; the listener and the goroutine that serves
// belong to whoever calls Serve. [Health] is the one part with a goroutine of its
// own. Requests are logged at debug only, since keys, owners and attributes are the
// callers' own.
//
// It may be imported by internal/node. Start reading at [NewPublicServer].
package api
