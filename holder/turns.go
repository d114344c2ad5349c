package holder

import (
	"context"
	"fmt"
	"slices"

	"github.com/leasenode/leasenode/lease"
)

// turns lets one request of a lease out at a time, in the order in which they were
// asked for. Its methods are called with the lease's mutex held.
type turns struct {
	busy    bool
	waiting []chan struct{} // closed when it is their turn
}

// takeLocked takes the turn if nobody has it, and returns whether it did.
func (t *turns) takeLocked() bool {
	if t.busy {
		return false
	}
	t.busy = true
	return true
}

// joinLocked returns a channel that is closed when it is the caller's turn.
func (t *turns) joinLocked() chan struct{} {
	turn := make(chan struct{})
	if t.takeLocked() {
		close(turn)
	} else {
		t.waiting = append(t.waiting, turn)
	}
	return turn
}

// passLocked gives the turn to whoever waits longest, and returns false if nobody does.
func (t *turns) passLocked() bool {
	if len(t.waiting) == 0 {
		t.busy, t.waiting = false, nil
		return false
	}
	close(t.waiting[0])
	t.waiting = t.waiting[1:]
	return true
}

// leaveLocked gives up waiting. It returns false if the turn has come meanwhile: then
// it is the caller's, to use or to pass.
func (t *turns) leaveLocked(turn chan struct{}) bool {
	i := slices.Index(t.waiting, turn)
	if i < 0 {
		return false
	}
	t.waiting = slices.Delete(t.waiting, i, i+1)
	return true
}

// await returns when it is the caller's turn to send op; or without the turn when ctx
// has ended: nothing was done.
func (l *Lease) await(ctx context.Context, op lease.Op, turn chan struct{}) error {
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.turns.leaveLocked(turn) {
		l.passLocked()
	}
	return fmt.Errorf("%v %q: %w: %w", op, l.key, lease.ErrUnavailable, context.Cause(ctx))
}

// passLocked ends the caller's turn.
func (l *Lease) passLocked() {
	if !l.turns.passLocked() {
		l.scheduleLocked()
	}
}
