package leasetest

import (
	"maps"

	"github.com/leasenode/leasenode/lease"
)

// decide is the contract as a pure function: what a valid mutation makes of a
// key's state at now, whether that is a change, or why it is refused.
func decide(before keyState, m lease.Mutation, now lease.Instant) (after keyState, changed bool, err error) {
	if m.Op == lease.OpAcquire {
		return acquire(before, m, now)
	}
	r := before.record
	over := r.OverAt(now)
	mine := r.Owner == m.Owner && r.Epoch == m.Epoch
	if !mine || (over && m.Op != lease.OpRelease) {
		return before, false, lost(r, now)
	}
	after = before
	switch m.Op {
	case lease.OpRenew:
		after.record.LeaseUntil = max(r.LeaseUntil, now.Add(m.TTL))
	case lease.OpRelease:
		after.record.LeaseUntil = min(r.LeaseUntil, now)
	case lease.OpForget:
		after.record.ForgottenAtEpoch = r.Epoch
	}
	changed = after.record.LeaseUntil != r.LeaseUntil || after.record.ForgottenAtEpoch != r.ForgottenAtEpoch
	return after, changed, nil
}

func acquire(before keyState, m lease.Mutation, now lease.Instant) (after keyState, changed bool, err error) {
	r := before.record
	switch {
	case before.isCurrentAttempt(m) && !r.OverAt(now):
		return before, false, nil
	case before.isCurrentAttempt(m) || before.trail.remembers(m.Owner, m.RequestID):
		return before, false, lost(r, now)
	case !r.OverAt(now):
		return before, false, &lease.HeldError{Record: answerAt(r, now).Record, Remaining: r.RemainingAt(now)}
	}
	after = before
	after.requestID = m.RequestID
	after.record.Owner = m.Owner
	after.record.Epoch++
	after.record.LeaseUntil = now.Add(m.TTL)
	after.record.Attributes = maps.Clone(m.Attributes)
	return after, true, nil
}

// isCurrentAttempt reports whether m repeats the acquire that made the current
// grant. An absent request id repeats nothing.
func (s keyState) isCurrentAttempt(m lease.Mutation) bool {
	return m.RequestID != "" && m.RequestID == s.requestID && m.Owner == s.record.Owner
}

func lost(r lease.Record, now lease.Instant) error {
	return &lease.LostError{Record: answerAt(r, now).Record, Remaining: r.RemainingAt(now)}
}
