// Package feed turns what the log did to leases into events, keeps the latest of
// them, and hands them to whoever watches.
//
// # What it promises
//
// The events are a pure function of the log: the same on every node, whatever
// snapshots it was restored from on the way. They come in log order, and for a watcher
// without a gap and without a repeat. Before what a log entry did come the leases that
// its clock has found over, in the order of their end and key.
//
// Applying is not held up: it appends to a queue, and everything else happens in the
// feed's own goroutine and in those of the watchers. A watcher is a place in what is
// kept, not a queue of its own: one that does not keep up is told that it was too slow.
// All memory is bounded, except for the ends of unexpired leases, some 32 bytes each
// and its key.
//
// # What it does not promise
//
// To keep anything for long. What is kept goes by [Bounds], renewals apart from
// everything else. After a restore, and when the feed has fallen behind by more than
// its queue may have, everything up to then is gone, and the watchers are told.
//
// # Layout
//
// feed.go has the goroutine that makes events of entries; queue.go what waits for it;
// ends.go when leases end; ring.go what is kept; watcher.go, reading.go and interest.go
// those who watch.
//
// It may be imported by fsm, api and internal/node, and imports lease only.
package feed
