package lease

import (
	"errors"
	"fmt"
	"time"
)

// Code is the stable name of a kind of failure: the reason on the wire, in JSON
// output and in metrics.
type Code string

// The codes. [CodeFenced] is never on the wire.
const (
	CodeHeld           Code = "LEASE_HELD"
	CodeLost           Code = "LEASE_LOST"
	CodeFenced         Code = "FENCED"
	CodeUnavailable    Code = "UNAVAILABLE"
	CodeOutcomeUnknown Code = "OUTCOME_UNKNOWN"
	CodeInvalid        Code = "INVALID"
	CodeExhausted      Code = "EXHAUSTED"
	CodeNotWaiting     Code = "NOT_WAITING"
	CodeCompacted      Code = "COMPACTED"
	CodeWatchTooSlow   Code = "WATCH_TOO_SLOW"
)

// ErrUnavailable says that the operation was certainly not done: there is no
// leader now, or it was never proposed. Trying again is always safe.
var ErrUnavailable error = &plainError{CodeUnavailable, "unavailable: certainly not done, try again"}

// ErrOutcomeUnknown says that the operation may or may not have been done: it
// was sent or proposed, and no answer came. Renew, release and forget can be
// tried again as they are, acquire with the same request id; or read the key.
var ErrOutcomeUnknown error = &plainError{CodeOutcomeUnknown, "outcome unknown: it may have been done; retry with the same request id, or read the key"}

type plainError struct {
	code Code
	text string
}

func (e *plainError) Error() string { return e.text }
func (e *plainError) Code() Code    { return e.code }

// HeldError refuses an acquire: the key has an unexpired lease, possibly the
// caller's own.
type HeldError struct {
	// Record is the lease in the way.
	Record Record
	// Remaining is how long it has to go at most, unless it is renewed.
	Remaining time.Duration
	// Place is the refused attempt's place in line: 1 if it is next, 0 if it does not
	// wait.
	Place int
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("%q is held by %q at epoch %d for another %v: wait, or try again after that", e.Record.Key, e.Record.Owner, e.Record.Epoch, e.Remaining.Round(time.Millisecond))
}

// Code returns [CodeHeld].
func (e *HeldError) Code() Code { return CodeHeld }

// LostError refuses a renew, release or forget for an epoch that is over or is
// someone else's, and an acquire whose request id names a grant that has ended.
type LostError struct {
	// Record is the key's record as it is now; its epoch is 0 if the key was never
	// granted.
	Record Record
	// Remaining is how long the current lease has to go; 0 if the key is free.
	Remaining time.Duration
}

func (e *LostError) Error() string {
	r := e.Record
	switch {
	case r.Epoch == 0:
		return fmt.Sprintf("%q was never granted to anyone, so there is no lease of it: acquire it first, or look at how it is spelled", r.Key)
	case e.Remaining == 0:
		return fmt.Sprintf("%q is held by nobody; the latest lease of it, epoch %d of %q, is over: stop, and acquire again", r.Key, r.Epoch, r.Owner)
	default:
		return fmt.Sprintf("%q is held by %q at epoch %d, and not by the owner at the epoch that was named: stop, and acquire again if that was you", r.Key, r.Owner, r.Epoch)
	}
}

// Code returns [CodeLost].
func (e *LostError) Code() Code { return CodeLost }

// FenceReason says in which way a holder has ended.
type FenceReason string

// The reasons.
const (
	// ReasonExpiredLocally: the holder's own clock has reached its deadline. The lease
	// may go on at the store, so a renewal that gets through resumes the holder.
	ReasonExpiredLocally FenceReason = "lease_expired_locally"
	// ReasonLost: the store says that the lease is over. Final.
	ReasonLost FenceReason = "lease_lost"
	// ReasonReleased: the holder gave the lease back, or was closed. Final.
	ReasonReleased FenceReason = "lease_released"
)

// FenceCause says what brought the end about.
type FenceCause string

// The causes.
const (
	// CauseUnreachable: renewals were tried, and the store did not answer in time.
	CauseUnreachable FenceCause = "unreachable"
	// CauseSuperseded: the store has granted the key again.
	CauseSuperseded FenceCause = "superseded"
	// CauseExpired: time ran out though no renewal is known to have failed, as in a
	// process that was stopped or on a machine that slept; or it ran out at the store,
	// which has not granted the key again yet.
	CauseExpired FenceCause = "expired"
	// CauseReleased: the holder asked for it.
	CauseReleased FenceCause = "released"
)

// FencedError tells a holder that it must stop: it does not hold its lease, or
// cannot know that it does. It is the holder's own finding and never on the wire.
type FencedError struct {
	Reason FenceReason
	Cause  FenceCause
	Key    string
	Epoch  uint64
}

func (e *FencedError) Error() string {
	if e.Reason == ReasonReleased {
		return fmt.Sprintf("the lease of %q at epoch %d was released (%s, %s): it is not held any more", e.Key, e.Epoch, e.Reason, e.Cause)
	}
	next := "acquire it again"
	if e.Reason == ReasonExpiredLocally {
		next = "wait for a renewal, or acquire it again"
	}
	return fmt.Sprintf("fenced from %q at epoch %d (%s, %s): stop, and %s", e.Key, e.Epoch, e.Reason, e.Cause, next)
}

// Code returns [CodeFenced].
func (e *FencedError) Code() Code { return CodeFenced }

// InvalidError refuses a request before anything is proposed.
type InvalidError struct {
	Field   string // as on the wire
	Problem string // what is wrong with it
	Limit   string // what it has to be
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %s: it must be %s", e.Field, e.Problem, e.Limit)
}

// Code returns [CodeInvalid].
func (e *InvalidError) Code() Code { return CodeInvalid }

// ExhaustedError refuses a request that would pass a limit of the store.
type ExhaustedError struct {
	// Resource is what there is no more of: "keys", "epochs", "requests".
	Resource string
	// Limit is how many there can be.
	Limit uint64
	// Key is the key that was asked for; may be empty.
	Key string
}

func (e *ExhaustedError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("no more %s: the limit is %d", e.Resource, e.Limit)
	}
	return fmt.Sprintf("no more %s for %q: the limit is %d", e.Resource, e.Key, e.Limit)
}

// Code returns [CodeExhausted].
func (e *ExhaustedError) Code() Code { return CodeExhausted }

// NotWaitingError refuses a release to a named owner who does not wait for the key now.
// Nothing was done: the lease goes on.
type NotWaitingError struct {
	Key string
	// Owner is who was to get the key.
	Owner string
}

func (e *NotWaitingError) Error() string {
	return fmt.Sprintf("%q was not released: %q does not wait for it now; try again when it does, or release to whoever is first in line", e.Key, e.Owner)
}

// Code returns [CodeNotWaiting].
func (e *NotWaitingError) Code() Code { return CodeNotWaiting }

// CodeOf returns the code of err, found anywhere in its chain, or "" if it has none.
func CodeOf(err error) Code {
	var coded interface{ Code() Code }
	if errors.As(err, &coded) {
		return coded.Code()
	}
	return ""
}
