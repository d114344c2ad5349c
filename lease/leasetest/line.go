package leasetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// waiter is an attempt in line for a key, in a [Memory].
type waiter struct {
	mutation lease.Mutation
	call     *waitingCall // nil between two calls
	until    time.Time    // when the place is lost, between two calls
}

// waitingCall is a call that waits. Its outcome is set before done is closed.
type waitingCall struct {
	ctx     context.Context
	done    chan struct{}
	outcome lease.Outcome
}

// recheck is how often a waiting call looks at the clock, which may be one that only
// the test moves.
const recheck = 100 * time.Millisecond

// wait is an acquire that waits its turn.
func (m *Memory) wait(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if err := req.Validate(); err != nil {
		return lease.Answer{}, err
	}
	if err := ended(ctx); err != nil {
		return lease.Answer{}, err
	}
	end := time.Now().Add(req.Wait)
	call := &waitingCall{ctx: ctx, done: make(chan struct{})}
	m.mu.Lock()
	m.serveLocked(req.Key)
	outcome := m.decideLocked(m.stepLocked(), req.Mutation())
	held, refused := outcome.Err.(*lease.HeldError)
	if !refused {
		m.mu.Unlock()
		return outcome.Answer, outcome.Err
	}
	w := m.joinLocked(req.Mutation(), call)
	m.mu.Unlock()
	for {
		m.mu.Lock()
		m.serveLocked(req.Key)
		over := !time.Now().Before(end)
		if w.call == call {
			held = m.heldLocked(w)
			if over || ctx.Err() != nil {
				m.pauseLocked(w)
			}
		}
		m.mu.Unlock()
		select {
		case <-call.done:
			return call.outcome.Answer, call.outcome.Err
		default:
		}
		switch {
		case ctx.Err() != nil:
			return lease.Answer{}, fmt.Errorf("%w: %w", held, context.Cause(ctx))
		case over:
			return lease.Answer{}, held
		}
		lease.TellWaiting(ctx, *held)
		timer := time.NewTimer(min(time.Until(end), max(held.Remaining, time.Millisecond), recheck))
		select {
		case <-call.done:
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

func (m *Memory) stepLocked() step {
	m.index++
	return step{now: m.nowLocked(), wall: m.clock.Wall()}
}

// joinLocked puts the attempt into line, or finds it there and ends its earlier call.
func (m *Memory) joinLocked(mutation lease.Mutation, call *waitingCall) *waiter {
	for _, w := range m.lines[mutation.Key] {
		if mutation.RequestID == "" || w.mutation.Owner != mutation.Owner || w.mutation.RequestID != mutation.RequestID {
			continue
		}
		if w.call != nil {
			w.call.outcome.Err = m.heldLocked(w)
			close(w.call.done)
		}
		w.mutation, w.call = mutation, call
		return w
	}
	w := &waiter{mutation: mutation, call: call}
	m.lines[mutation.Key] = append(m.lines[mutation.Key], w)
	return w
}

// pauseLocked ends the call of w. Without a request id to find it by, or if the caller
// has gone, w has left the line.
func (m *Memory) pauseLocked(w *waiter) {
	gone := w.call.ctx.Err() != nil
	w.call = nil
	w.until = time.Now().Add(lease.LongestPoll(w.mutation.TTL))
	if gone || w.mutation.RequestID == "" {
		m.leaveLocked(w)
	}
}

func (m *Memory) leaveLocked(w *waiter) {
	key := w.mutation.Key
	m.lines[key] = slices.DeleteFunc(m.lines[key], func(x *waiter) bool { return x == w })
	if len(m.lines[key]) == 0 {
		delete(m.lines, key)
	}
}

// heldLocked is the refusal of w, which is in line.
func (m *Memory) heldLocked(w *waiter) *lease.HeldError {
	answer := answerAt(m.keys[w.mutation.Key].record, m.nowLocked())
	return &lease.HeldError{Record: answer.Record, Remaining: answer.Remaining, Place: slices.Index(m.lines[w.mutation.Key], w) + 1}
}

// headLocked returns the first in line whose call goes on, of that owner unless it is
// empty, or nil.
func (m *Memory) headLocked(key, owner string) *waiter {
	for _, w := range slices.Clone(m.lines[key]) {
		switch {
		case w.call == nil && !time.Now().Before(w.until):
			m.leaveLocked(w)
		case w.call != nil && w.call.ctx.Err() == nil && (owner == "" || w.mutation.Owner == owner):
			return w
		}
	}
	return nil
}

// serveLocked grants the key to the first in line if nobody has it.
func (m *Memory) serveLocked(key string) {
	state := m.keys[key]
	if state == nil || !state.record.OverAt(m.nowLocked()) {
		return
	}
	if w := m.headLocked(key, ""); w != nil {
		m.grantLocked(m.stepLocked(), w)
	}
}

// grantLocked decides the acquire of w and tells its call.
func (m *Memory) grantLocked(s step, w *waiter) {
	w.call.outcome = m.decideLocked(s, w.mutation)
	close(w.call.done)
	m.leaveLocked(w)
}

// releaseTo releases and grants the key to owner to, who waits for it.
func (m *Memory) releaseTo(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	if err := req.Validate(); err != nil {
		return lease.Answer{}, err
	}
	if err := ended(ctx); err != nil {
		return lease.Answer{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.serveLocked(req.Key)
	w := m.headLocked(req.Key, req.To)
	state := m.keys[req.Key]
	if w == nil && state != nil && state.record.Owner == req.Owner && state.record.Epoch == req.Epoch && !state.record.OverAt(m.nowLocked()) {
		return lease.Answer{}, &lease.NotWaitingError{Key: req.Key, Owner: req.To}
	}
	s := m.stepLocked()
	outcome := m.decideLocked(s, req.Mutation())
	if outcome.Err == nil && w != nil {
		m.grantLocked(s, w)
	}
	return outcome.Answer, outcome.Err
}
