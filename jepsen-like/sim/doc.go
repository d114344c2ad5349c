// Package sim simulates whole clusters: real nodes, clients and holders in a bubble of
// package testing/synctest, on a network, disks and clocks that do what they are told.
// Time in a bubble goes on only when nobody has anything left to do, so that minutes of
// faults take seconds.
//
//   - [Run] does a schedule of faults to a cluster under load and returns what happened;
//     [Plan] makes the schedule of a seed; [Judge] judges.
//   - [Cluster] is the cluster, a target of package nemesis, for who wants to go step by
//     step: the scenarios in the tests of this package do.
//
// All of it has to be called in a bubble. A seed fixes what is done and how long things
// take, and not the order of goroutines that could run at the same instant.
//
// In a bubble time stands still while any goroutine waits for a mutex. The product has
// mutexes that are held while a disk writes; so the simulated disk keeps its time outside
// of those, and lets one writer in at a time. A part that waits while it holds a mutex
// which another one wants makes a bubble stand for ever: the timeout of the test then
// shows who it is.
//
// What is simulated and what is not is in docs/simulation.md.
package sim
