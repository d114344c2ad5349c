// Package leasetest is what tests of leases need: for the authors of a
// [lease.Store], and for everyone who builds on one.
//
//   - [Run] holds any store against the contract of [lease.Store], check by check
//     (see [Checks]), with a clock that the test moves by hand; [RunWatch] does so for
//     [lease.Watcher].
//   - [Memory] is the reference: a store in memory that is meant to be read, and can be
//     watched.
//   - [ManualClock] and [TrippingClock] are clocks that move when they are told to.
//   - [Faulty] puts an outage, a delay, a failure or a lost answer between a caller
//     and a store.
//   - The broken stores ([EvictsHolder] and those beside it) each break exactly one
//     promise of the store inside, and the broken watchers ([SkipsReleases] and those
//     beside it) one of the watcher inside. They show that a check can fail, and what a
//     program does on top of a store that is wrong.
//
// It promises nothing about durability, consensus or speed: a store that passes
// here and forgets everything at a restart is still a broken one.
//
// Anyone may import it. It imports the standard library and package lease only,
// and not the package testing, so that a program can check a live store too: the
// checks work on keys of their own.
package leasetest
