package nemesis

import (
	"context"
	"time"
)

// Target is a cluster that faults can be done to: real processes, or a simulation.
// Nodes and holders are numbered from 0. Its methods return when the fault is in
// effect, are called by one goroutine, and are idempotent: what is killed can be
// killed again. The zero state of everything is health.
type Target interface {
	// Nodes and Holders are how many there are; they do not change.
	Nodes() int
	Holders() int
	// Leader returns the node that leads, as far as it can be found out now.
	Leader(ctx context.Context) (node int, ok bool)

	// SetLink puts the directed link between two nodes into a state.
	SetLink(from, to int, state LinkState)
	// SetClientLink puts what flows between all clients and a node into a state.
	SetClientLink(node int, state LinkState)

	// Kill ends a node as kill -9 does. Start starts a node that does not run, and does
	// not wait until it serves. Terminate asks it to end, which hands leadership over.
	Kill(node int) error
	Start(node int) error
	Terminate(node int) error
	// Stop freezes a node as SIGSTOP does; Continue lets it go on.
	Stop(node int) error
	Continue(node int) error
	// StopHolder and ContinueHolder do that to a holder.
	StopHolder(holder int) error
	ContinueHolder(holder int) error

	// SetClock makes a node's clock run at a rate (1 is right) from now on, and jump
	// ahead by a length once.
	SetClock(node int, clock ClockState) error
	// SetDisk puts a node's disk into a state.
	SetDisk(node int, disk DiskState) error
}

// LinkState is what a directed link does to what is sent over it. The zero value is a
// healthy link.
type LinkState struct {
	// Cut lets nothing through: what is sent is held, as by a network that drops it, and
	// new connections get no answer.
	Cut bool `json:"cut,omitempty"`
	// Delay is added to everything, and up to Jitter more.
	Delay  time.Duration `json:"delay,omitempty"`
	Jitter time.Duration `json:"jitter,omitempty"`
	// BytesPerSecond bounds the bandwidth; 0 for no bound.
	BytesPerSecond int `json:"bytes_per_second,omitempty"`
	// ResetEvery resets all connections of the link again and again; 0 for never.
	ResetEvery time.Duration `json:"reset_every,omitempty"`
	// HalfOpen accepts new connections and says nothing on them; those that there are go silent.
	HalfOpen bool `json:"half_open,omitempty"`
}

// ClockState is what a node's clock does. The zero value is a right clock.
type ClockState struct {
	// Rate is how much faster than real time it runs, as a fraction: 0.05 gains 50 ms a
	// second, -0.05 loses them.
	Rate float64 `json:"rate,omitempty"`
	// Jump is added once: no more than the clock's own monotonic reading may be moved, so
	// it is never negative.
	Jump time.Duration `json:"jump,omitempty"`
}

// DiskState is what a node's disk does to writes of the log, the vote and snapshots.
type DiskState string

// The states of a disk.
const (
	DiskHealthy  DiskState = ""
	DiskFull     DiskState = "full"      // no space left
	DiskFailing  DiskState = "failing"   // the next write fails, as a failed fsync does
	DiskReadOnly DiskState = "read-only" // no write is let through
	DiskSlow     DiskState = "slow"      // each write takes a while longer
	DiskHanging  DiskState = "hanging"   // writes never return
	// DiskDeadly kills the node, as kill -9 does, in the middle of its next snapshot.
	DiskDeadly DiskState = "deadly"
)
