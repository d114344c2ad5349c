package lease

import (
	"fmt"
	"time"
)

// Instant is a point on the cluster clock, in nanoseconds; what has come over the wire
// is in whole milliseconds, rounded down. It starts near the wall clock of the node that
// opened the cluster's first term and then runs on its own, and stands still while nobody
// leads. It is not a time of day.
//
// Instants of one cluster can be compared and subtracted: at least as much real time has
// passed between two of them as their difference, and maybe more. They can not be held
// against [time.Now], against any other clock, or against those of another cluster, and
// nobody can wait until one by a clock of its own: for that there is Answer.Remaining,
// counted from before the request was sent.
type Instant int64

// Add returns the instant d later.
func (t Instant) Add(d time.Duration) Instant { return t + Instant(d) }

// Sub returns how long after u the instant t is.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Millis returns t in milliseconds, rounded down: the form it has on the wire.
func (t Instant) Millis() int64 { return int64(t) / int64(time.Millisecond) }

// InstantOfMillis is the inverse of [Instant.Millis].
func InstantOfMillis(ms int64) Instant { return Instant(ms) * Instant(time.Millisecond) }

// Record is what a store keeps of one key. A key that was never granted has the
// zero record with only Key set; a record that exists is never removed.
//
// The request id of the current grant is part of the stored state and is left out
// here on purpose: who knows it can take the grant, so no answer carries it.
type Record struct {
	Key   string
	Owner string
	// Epoch is the fencing token of the latest grant; 0 if there was none.
	// Invariant: a change moves it by 0 or +1.
	Epoch uint64
	// LeaseUntil is the instant, on the cluster clock, at which the lease is over: not a
	// time of day, and of use only beside a Now of the same cluster. Whoever owns the key
	// stops by what Remaining said, not by this.
	LeaseUntil Instant
	// ForgottenAtEpoch is the forgotten floor: state that was written at or below
	// this epoch counts as erased. Invariant: it never moves back, and never
	// exceeds Epoch.
	ForgottenAtEpoch uint64
	// Attributes say where the owner can be reached, which version it runs, and
	// the like. They belong to the current grant. Read only.
	Attributes map[string]string
}

// OverAt reports whether the lease is over at now. A lease is over at its end
// instant, not after it; a key that was never granted is free.
func (r Record) OverAt(now Instant) bool { return r.Epoch == 0 || now >= r.LeaseUntil }

// RemainingAt returns how long the lease has to go at now; 0 if it is over.
func (r Record) RemainingAt(now Instant) time.Duration {
	if r.OverAt(now) {
		return 0
	}
	return r.LeaseUntil.Sub(now)
}

// Op is a kind of mutation.
type Op uint8

// The operations. Their numbers are part of the log's format and are for ever.
const (
	OpAcquire Op = 1
	OpRenew   Op = 2
	OpRelease Op = 3
	OpForget  Op = 4
)

// String returns the word that history, command line and metrics use.
func (op Op) String() string {
	switch op {
	case OpAcquire:
		return "acquire"
	case OpRenew:
		return "renew"
	case OpRelease:
		return "release"
	case OpForget:
		return "forget"
	default:
		return fmt.Sprintf("op(%d)", uint8(op))
	}
}

// Mutation is one operation that may change a record, in the form in which it is
// checked, forwarded and logged. Fields that an operation does not use are zero.
type Mutation struct {
	Op    Op
	Key   string
	Owner string
	// Epoch is the epoch that a renew, release or forget speaks for.
	Epoch uint64
	// TTL is the length asked for by an acquire or a renew.
	TTL time.Duration
	// RequestID names one attempt to acquire; empty for none.
	RequestID string
	// Attributes go with an acquire. Read only.
	Attributes map[string]string
}

// Answer is what a store says to an operation that it did, or to a read.
type Answer struct {
	// Record is the key's record after the operation.
	Record Record
	// Now is the cluster clock at which the operation was decided, or as of which the read
	// is: not a time of day. LeaseUntil and Now of one answer can be subtracted.
	Now Instant
	// Remaining is how long the lease has to go from Now: never more than the ttl
	// that was asked for, and 0 if the key is free. A holder counts it, on its own
	// monotonic clock, from before it sent the request; counted from when the answer was
	// read, it would end after the lease. Over the wire it is in whole milliseconds:
	// rounded down in the answer to a mutation, and up in that to a read, which must not
	// be taken for a right to act.
	Remaining time.Duration
	// Changed tells an operation that did something from a repetition that found
	// it done already: an acquire that was answered with the grant it made before,
	// a second release of one's own lease.
	Changed bool
}

// Entry is one granted operation in a key's history.
type Entry struct {
	// Index is the position in the store's log. Entries of one index are in the
	// order in which they were decided.
	Index uint64
	Op    Op
	Key   string
	Owner string
	Epoch uint64
	// At is the cluster clock at which it was decided: comparable with other instants of
	// this cluster, and not with Wall.
	At Instant
	// Wall is the wall clock of the leader that proposed it: for people to read,
	// without any promise of order.
	Wall time.Time
}
