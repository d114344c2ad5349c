// Package lease is the domain of leasenode: what a lease is, what may be done
// to it, what can go wrong, and the interfaces that a store and a clock meet.
// It imports the standard library only and is safe for anyone to import.
//
// # What is promised
//
// For every key at most one owner holds an unexpired lease at a time, and every
// grant of a key carries the next epoch: the first is 1, each later one is
// exactly one more, and no epoch of a key is ever granted twice, whatever is
// restarted, restored or elected in between. The epoch is the fencing token to
// give to the resource that must not be written to by two owners.
//
// # Why it holds
//
// Whether a lease is over is decided by the cluster clock alone (see [Instant]),
// which lives in the replicated state and moves only through the log. Each
// mutation carries the leader's reading of it, taken after the mutation had
// arrived, and counted on the leader's monotonic clock from an entry which that
// same leader committed in that same term. So between two entries no more
// cluster time passes than real time did: a lease may last longer than asked
// when leaders change, never shorter.
//
// A holder counts its window from before it sent the request which was answered,
// on its own monotonic clock, and stops a margin early. Since the cluster clock
// cannot have begun the lease before that instant, the holder is finished before
// the store can grant the key to anybody else.
//
// # The one assumption
//
// The rates of two machines' clocks differ by less than margin / ttl. Wall clocks
// are never read for a decision and no two machines' clocks are ever compared. A
// machine that is frozen where its own clock cannot see it (a hypervisor's pause,
// a restored snapshot of a virtual machine) is outside the assumption: there only
// the epoch, checked at the resource, protects.
//
// # What is not promised
//
// A lease says who may act, not that they do. A store that cannot reach a
// majority of its nodes answers nothing rather than something unsafe: an outage
// may stop owners, it never makes two.
//
// Start reading at [Record] and [Store].
package lease
