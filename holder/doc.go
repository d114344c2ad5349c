// Package holder is what a replica embeds to own keys of a leasenode cluster.
//
// [Client] is a [lease.Store] over gRPC: it finds the leader, goes to another node when
// one is dead or cut off, and repeats what is safe to repeat until its caller's context
// ends. It tells an operation that was certainly not done ([lease.ErrUnavailable]) from
// one that may have been ([lease.ErrOutcomeUnknown]).
//
// It does not count time for the caller: who acts on a lease has to stop before what an
// answer says remains, counted from before the request was sent, is up.
//
// The package links no consensus and no storage.
package holder
