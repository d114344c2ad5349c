// Package nemesis makes schedules of faults from a seed, and does them to a cluster.
//
// A schedule is pure: the same seed and options give the same steps. What a step does
// to a running cluster goes through a [Target].
package nemesis
