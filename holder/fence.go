package holder

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// What moves a lease from one state to another. Nothing here waits.

func (l *Lease) deadlineLocked() time.Duration { return l.holder.terms.deadline(l.end) }

// lookLocked reads the clock, fences the lease if its deadline has come, and returns
// why it is not held, or nil.
func (l *Lease) lookLocked() *lease.FencedError {
	if l.fence == nil && l.holder.clock.Monotonic() >= l.deadlineLocked() {
		cause := lease.CauseExpired
		if l.failing || l.turns.busy {
			cause = lease.CauseUnreachable
		}
		l.fenceLocked(lease.ReasonExpiredLocally, cause)
	}
	return l.fence
}

// fenceLocked notes that the lease is not held, and tells those who want to know.
func (l *Lease) fenceLocked(reason lease.FenceReason, cause lease.FenceCause) {
	l.fence = &lease.FencedError{Reason: reason, Cause: cause, Key: l.key, Epoch: l.epoch}
	if l.cancel != nil {
		l.cancel(l.fence)
	}
	l.holder.tell(l)
}

// endLocked fences the lease for good, unless that was done before, and has it neither
// renewed nor watched any more.
func (l *Lease) endLocked(reason lease.FenceReason, cause lease.FenceCause) {
	if fence := l.lookLocked(); fence != nil && fence.Reason != lease.ReasonExpiredLocally {
		return
	}
	l.fenceLocked(reason, cause)
	l.holder.drop(l)
}

// renewedLocked takes in an answered renewal. A deadline that has passed unnoticed is
// noticed first: who was told that the lease is held must not learn of a gap never.
func (l *Lease) renewedLocked(p proof) {
	l.lookLocked()
	l.failing = false
	l.end = max(l.end, p.end())
	now := l.holder.clock.Monotonic()
	if l.fence != nil && l.fence.Reason == lease.ReasonExpiredLocally && now < l.deadlineLocked() {
		l.fence = nil
		l.holder.counts.resumed.Add(1)
		l.holder.tell(l)
	}
	l.dueLocked(p.sent, l.holder.terms.interval())
}

// dueLocked has the next automatic renewal come about pause after from.
func (l *Lease) dueLocked(from, pause time.Duration) {
	pause = spread(pause)
	l.due = from + pause
	l.early = l.due - pause/10
}

// failedLocked takes in a renewal that was not answered.
func (l *Lease) failedLocked() {
	l.failing = true
	now, t := l.holder.clock.Monotonic(), l.holder.terms
	pause := t.interval()
	if now < l.end {
		pause = t.pause(t.left(l.end, now))
	}
	l.dueLocked(now, pause)
}

// lostLocked takes in that the store refused this lease.
func (l *Lease) lostLocked(refusal *lease.LostError) {
	cause := lease.CauseExpired
	if refusal.Record.Epoch != l.epoch {
		cause = lease.CauseSuperseded
	}
	l.over = true
	l.endLocked(lease.ReasonLost, cause)
}

func asLost(err error) (*lease.LostError, bool) { return errors.AsType[*lease.LostError](err) }

// settle takes in what became of a renewal that was sent at sent, and returns the
// error if there was one.
func (l *Lease) settle(sent time.Duration, outcome lease.Outcome) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer, err := outcome.Answer, outcome.Err
	if err == nil && (answer.Record.Epoch != l.epoch || answer.Record.Owner != l.Owner()) {
		err = fmt.Errorf("the answer is about another grant: %w", lease.ErrOutcomeUnknown)
	}
	lost, isLost := asLost(err)
	switch {
	case err == nil:
		l.holder.counts.renewed.Add(1)
		l.renewedLocked(proof{sent: sent, remaining: min(answer.Remaining, l.holder.terms.ttl)})
	case isLost:
		l.lostLocked(lost)
	default:
		l.holder.counts.failed.Add(1)
		l.failedLocked()
	}
	return err
}
