// Package nemesis makes schedules of faults from a seed, and does them to a cluster.
//
// [Plan] is pure: the same options give the same [Schedule], which is plain data that
// can be printed, stored, replayed and cut down by [Shrink]. [Run] does a schedule to a
// [Target], real processes or a simulation, and leaves it healthy, whatever happens.
//
// A schedule consists of phases: for a while faults come and go in random combination,
// then all of them are healed, and in the quiet time that follows the cluster has to
// serve again. Only who leads is found out at run time: a step against the leader names
// a node to take if nobody leads.
//
// What a schedule does to a cluster is not the same each time: it fixes what is done
// and when, not how the processes come to run.
//
// Start reading at [Kinds], the faults there are; effect.go says what each of them does.
package nemesis
