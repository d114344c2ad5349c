package holder

import (
	"context"
	"sync"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// Lease is a key that this process owns, for as long as [Lease.Check] says so. It is
// renewed until it is released or lost. All methods are safe for concurrent use; those
// without a context never wait for the store.
//
// # Its life
//
// A lease is held from its grant to its deadline, which each answered renewal moves:
// to a margin before the moment at which the store could end it. At the deadline the
// holder is fenced, whatever the reason. If a renewal then gets through before the
// store has ended the lease, it is held again, under the same epoch: nobody else has
// held the key in between. Once the store says that it is over, it is lost, for good:
// acquire the key anew.
type Lease struct {
	holder *Holder
	key    string
	epoch  uint64

	mu    sync.Mutex
	turns turns
	// end is the moment at which the store may end the lease. It never goes back.
	end time.Duration
	// fence is why the lease is not held; nil while it is. Invariant: once its reason is
	// not [lease.ReasonExpiredLocally], it stays.
	fence *lease.FencedError
	// over says that the store is known to have ended the lease: nothing to release.
	// Invariant: fence is then set, for good.
	over bool
	// failing says that no try since the last answered one was answered.
	failing bool
	floor   uint64
	// due is when the next automatic renewal is, which may be as early as early.
	due, early time.Duration
	ctx        context.Context // made when it is first asked for
	cancel     context.CancelCauseFunc

	entry entry // of the holder's schedule, under its mutex
}

// Key returns the key.
func (l *Lease) Key() string { return l.key }

// Owner returns the owner.
func (l *Lease) Owner() string { return l.holder.config.Owner }

// Epoch returns the fencing token: hand it to every resource that must not be written
// to by two owners, and have the resource refuse a lower one than it has seen.
func (l *Lease) Epoch() uint64 { return l.epoch }

// ForgottenAtEpoch returns the forgotten floor: state of the key that was written at
// this epoch or a lower one counts as erased.
func (l *Lease) ForgottenAtEpoch() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.floor
}

// Check returns nil if the lease is held, and else a [*lease.FencedError] that says
// why not. Call it before every act that must be exclusive. It reads the clock, and
// rests on no timer: in a process that was stopped past its deadline, the first call
// says so. What happens between it and the act, it cannot know; the epoch is for that.
func (l *Lease) Check() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fence := l.lookLocked(); fence != nil {
		return fence
	}
	return nil
}

// Held reports whether the lease is held: whether [Lease.Check] would return nil.
func (l *Lease) Held() bool { return l.Check() == nil }

// Remaining returns how long until the deadline if no further renewal gets through, by
// this process's own clock, the margin already taken off; 0 if the lease is not held. It
// is true at the call: for whether to begin something that takes as long, and never kept.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lookLocked() != nil {
		return 0
	}
	return max(0, l.deadlineLocked()-l.holder.clock.Monotonic())
}

// Context returns a context for work that may only go on while the lease is held: it
// is cancelled when that ends, with the [*lease.FencedError] as its cause (see
// [context.Cause]). It stays cancelled, also if the lease is resumed; a later call
// then returns a new one.
//
// The cancellation rests on a timer, and comes up to a second late on a machine that
// slept: work that must be exclusive calls [Lease.Check] too.
func (l *Lease) Context() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	fence := l.lookLocked()
	if l.ctx == nil || (fence == nil && l.ctx.Err() != nil) {
		l.ctx, l.cancel = context.WithCancelCause(context.Background())
		if fence != nil {
			l.cancel(fence)
		}
	}
	return l.ctx
}

// Renew asks the store for a whole ttl now. There is no need to: leases are renewed by
// themselves. It takes its turn among the requests of this lease, and makes one short
// try, bounded to a third of what is left. On an error that is no refusal the lease
// goes on as it was, and will be tried again.
//
// Errors: a [*lease.FencedError] if the lease was lost or released before; a
// [*lease.LostError] if it is found lost now; [lease.ErrUnavailable] or
// [lease.ErrOutcomeUnknown].
func (l *Lease) Renew(ctx context.Context) error {
	l.mu.Lock()
	if fence := l.lookLocked(); fence != nil && fence.Reason != lease.ReasonExpiredLocally {
		l.mu.Unlock()
		return fence
	}
	turn := l.turns.joinLocked()
	l.mu.Unlock()
	if err := l.await(ctx, lease.OpRenew, turn); err != nil {
		return err
	}
	defer l.pass()
	if fence := l.lostFence(); fence != nil {
		return fence
	}
	return l.holder.renewOne(ctx, l)
}

// Forget raises the key's forgotten floor to this lease's epoch: whatever was written
// for the key so far counts as erased, for every later owner. It makes one try, like
// [Lease.Renew]; it can be repeated.
//
// Errors: a [*lease.FencedError] if the lease is not held; else as [Lease.Renew].
func (l *Lease) Forget(ctx context.Context) error {
	l.mu.Lock()
	if fence := l.lookLocked(); fence != nil {
		l.mu.Unlock()
		return fence
	}
	turn := l.turns.joinLocked()
	l.mu.Unlock()
	if err := l.await(ctx, lease.OpForget, turn); err != nil {
		return err
	}
	defer l.pass()
	if fence := l.expiredFence(); fence != nil {
		return fence
	}
	return l.holder.forgetOne(ctx, l)
}

// Release stops the holder at once and then gives the lease back, so that others need
// not wait for its end: [Lease.Held] is false from the moment of the call. Make sure
// that the work is finished before. Requests that were asked before it are still sent,
// in order; later ones are refused.
//
// It returns nil when the lease is over at the store, also if it was over already. If
// the store cannot be reached before ctx ends, or within a ttl, after which the lease
// has ended by itself, it returns [lease.ErrUnavailable] or [lease.ErrOutcomeUnknown];
// another call tries again.
func (l *Lease) Release(ctx context.Context) error {
	l.mu.Lock()
	l.endLocked(lease.ReasonReleased, lease.CauseReleased)
	turn := l.turns.joinLocked()
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, l.holder.terms.ttl)
	defer cancel()
	if err := l.await(ctx, lease.OpRelease, turn); err != nil {
		return err
	}
	defer l.pass()
	if l.isOver() {
		return nil
	}
	err := l.holder.releaseOne(ctx, l)
	if _, lost := asLost(err); err != nil && !lost {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	return nil
}

func (l *Lease) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.passLocked()
}

func (l *Lease) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// lostFence returns the fence of a lease that the store has ended, and otherwise nil,
// also for one that was released: what was asked before that is still sent.
func (l *Lease) lostFence() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over {
		return l.fence
	}
	return nil
}

// expiredFence is as lostFence, and returns a fence for one past its deadline, too.
func (l *Lease) expiredFence() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fence := l.lookLocked()
	if fence != nil && (l.over || l.holder.clock.Monotonic() >= l.deadlineLocked()) {
		return fence
	}
	return nil
}
