package leasetest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// Subject is a store under test, with its time in the test's hands.
type Subject struct {
	// Store is the store. It may be new or long in use, near or far; instants in its
	// answers may be rounded to milliseconds. A client library that adds request ids
	// of its own to calls without one is fine.
	Store lease.Store
	// Advance moves the store's cluster clock by exactly d, a positive whole number
	// of milliseconds, and returns when whatever is asked next is decided at that
	// time or later. Between calls of it the cluster clock has to stand still.
	Advance func(ctx context.Context, d time.Duration) error
	// Retries says that Store tries a call again by itself when the answer is late or
	// lost, as a client of a store that is far does. A mutation may then be answered as a
	// repetition of itself: as one that changed nothing, or, for a release to somebody
	// who waits, as lost. A check that comes upon that begins again, a few times at most:
	// a store that always answers so does not pass.
	Retries bool
	// Kept is how much history the store keeps of a key; the zero value stands for
	// [KeptGrants] and [KeptRenewals].
	Kept Kept
	// Watcher is the same store as one that can be watched: for the checks of watching.
	Watcher lease.Watcher
	// Compact has the store, in all of its nodes, give up all events that it keeps, so
	// that a watch can not go on after a position from before them. Without it, that is
	// not checked.
	Compact func(context.Context) error
}

// Kept says how much history is kept of a key.
type Kept struct {
	Grants   int // the latest acquires, each with what else there is of its epoch; at least 2
	Renewals int // the latest renewals of those grants; at least 1
}

// Check is one named part of the contract of [lease.Store], or of [lease.Watcher].
type Check struct {
	// Name is a sentence that says what has to hold, unique and stable.
	Name string
	run  func(*trial)
}

// Failure is a check that a store did not pass.
type Failure struct {
	Check string
	// Err says what was done, what was expected and what came.
	Err error
}

// Against runs the check and returns what was wrong, or nil. It works on keys of
// its own, made up at random below "conformance/", and leaves their records
// behind. A call that fails for want of the store (unavailable, unknown outcome)
// is a failure: the store has to be up. ctx bounds all of it.
func (c Check) Against(ctx context.Context, s Subject) error {
	if s.Kept == (Kept{}) {
		s.Kept = Kept{Grants: KeptGrants, Renewals: KeptRenewals}
	}
	var t *trial
	for range maxTries {
		t = &trial{ctx: ctx, subject: s, keys: "conformance/" + unique() + "/"}
		c.run(t)
		t.end()
		if !t.repeated && (!t.polled || t.err == nil) {
			break
		}
	}
	return t.err
}

// maxTries is how often is tried what a store that is far can spoil by chance.
const maxTries = 3

// Checks returns all checks. They are independent of each other and of their
// order, but share the subject's clock: run them one after the other.
func Checks() []Check {
	return slices.Concat(exclusionChecks(), epochChecks(), renewChecks(), releaseChecks(), forgetChecks(),
		retryChecks(), attributeChecks(), batchChecks(), readChecks(), historyChecks(), limitChecks(), waitChecks())
}

// Run runs all checks against s and returns every failure, in the order of the
// checks; none for a store that keeps the contract.
func Run(ctx context.Context, s Subject) []Failure { return run(ctx, s, Checks()) }

func run(ctx context.Context, s Subject, checks []Check) []Failure {
	var failures []Failure
	for _, check := range checks {
		if err := check.Against(ctx, s); err != nil {
			failures = append(failures, Failure{Check: check.Name, Err: err})
		}
	}
	return failures
}

// unique returns 16 random hex digits.
func unique() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see its documentation
	return hex.EncodeToString(b[:])
}
