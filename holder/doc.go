// Package holder is what a replica embeds to own keys of a leasenode cluster, and to
// know by itself when it must stop.
//
// # Owning a key
//
// [Dial] makes a [Client], which is a connection to the cluster. [New] makes a [Holder]
// on it, one for a process. [Holder.Acquire] returns a [Lease], renewed in the
// background until it is released; [Lease.Check] says whether the process is the owner
// at this moment, and [Lease.Epoch] is the token to give to whatever must not be written
// by two owners. [Holder.Run] is all of that in one call.
//
// # What is promised
//
// While Check returns nil, no other process has been granted the key since this lease
// began, and none will be before the deadline that Check has looked at. That rests on
// the rates of two machines' clocks differing by less than margin / ttl, and on a clock
// that goes on while the machine sleeps: see [NewClock]. No wall clock is read.
//
// # What is not
//
// Between a Check and the act after it, anything may happen to a process: it can be
// stopped for an hour. A machine can be paused by its hypervisor without its clock
// knowing. There only the token protects, checked by the resource itself.
//
// # Where to start reading
//
// The examples; then [Lease]; then the pure rules in deadline.go. [Client] is a
// [lease.Store], and a Holder works on any such: tests use that of package leasetest.
// The package links no consensus and no storage.
package holder
