package holder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// Work is what [Holder.Run] runs while a lease is held. Its context is cancelled when
// the lease is not held any more, or the context of Run ends; it has to return soon
// after that, since the margin of the lease is all the time there is.
type Work func(ctx context.Context, l *Lease) error

// RunOption changes how [Holder.Run] works.
type RunOption func(*runner)

// ContendAgain has Run wait its turn again after the lease was fenced or lost under
// the work, and run the work anew under a fresh epoch.
func ContendAgain() RunOption { return func(r *runner) { r.again = true } }

// AtHardDeadline has overdue called if the work has not returned halfway through the
// margin after the lease's deadline, or when the lease turns out to be lost under it:
// the last chance to end the work by force, for instance by ending the process. It is
// called once for each run of the work, on a goroutine of its own, for which Run waits.
func AtHardDeadline(overdue func(*Lease)) RunOption {
	return func(r *runner) { r.overdue = overdue }
}

type runner struct {
	holder  *Holder
	again   bool
	overdue func(*Lease)
}

// Run acquires key, waiting its turn for as long as ctx allows, runs work under the
// lease, and gives it back when work has returned: leader election in one call. The
// lease is renewed for exactly as long as work runs, also while it does not heed its
// context, and not released before; if work panics, the lease is released and the
// panic goes on.
//
// It returns what work returned, if the lease was held to the end. Otherwise, unless
// it is to contend again, it returns a [*lease.FencedError] joined with what work
// returned: it is not certain then that the work was exclusive to its end. Before work
// has begun it returns the errors of [Holder.Await].
func (h *Holder) Run(ctx context.Context, key string, work Work, options ...RunOption) error {
	r := runner{holder: h}
	for _, option := range options {
		option(&r)
	}
	for {
		l, err := h.Await(ctx, key)
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
		fence, err := r.workUnder(ctx, l, work)
		switch {
		case fence == nil:
			return err
		case !r.again || fence.Reason == lease.ReasonReleased || ctx.Err() != nil:
			if errors.Is(err, fence) { // the work has returned its context's cause
				return fmt.Errorf("run: %w", err)
			}
			return fmt.Errorf("run: %w", errors.Join(fence, err))
		}
		h.log.Info("contending again", "key", key, "after", l.epoch, "error", err)
	}
}

// workUnder runs work under l. It returns how the lease was fenced under the work, if
// it was, even if it was resumed later; and what work returned.
func (r runner) workUnder(ctx context.Context, l *Lease, work Work) (*lease.FencedError, error) {
	held := l.Context()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unbind := context.AfterFunc(held, func() { cancel(context.Cause(held)) })
	defer unbind()
	defer r.giveBack(ctx, l)
	defer r.watch(l)()
	err := work(ctx, l)
	_ = l.Check() // cancels held, if its timer is late
	var fence *lease.FencedError
	if errors.As(context.Cause(held), &fence) && fence.Cause == lease.CauseReleased && l.isOver() {
		return nil, err // by the work itself
	}
	return fence, err
}

// giveBack releases l after its work has returned, whatever became of ctx. A failure
// is no failure of the work: the lease then ends by itself.
func (r runner) giveBack(ctx context.Context, l *Lease) {
	if err := l.Release(context.WithoutCancel(ctx)); err != nil {
		r.holder.log.Warn("could not give the lease back: it ends by itself", "key", l.key, "epoch", l.epoch, "error", err)
	}
}

// watch starts watching for the hard deadline of l, and returns what stops that.
func (r runner) watch(l *Lease) (stop func()) {
	if r.overdue == nil {
		return func() {}
	}
	done := make(chan struct{})
	var joined sync.WaitGroup
	joined.Go(func() { r.watchLoop(l, done) })
	return func() {
		close(done)
		joined.Wait()
	}
}

func (r runner) watchLoop(l *Lease, done chan struct{}) {
	for {
		left := l.untilHardDeadline()
		if left <= 0 {
			r.overdue(l)
			return
		}
		timer := time.NewTimer(min(left, mostSleep))
		select {
		case <-done:
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// untilHardDeadline returns how long the work under l may go on at most, unless l is
// renewed. Work that has given l back itself may go on for ever.
func (l *Lease) untilHardDeadline() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over && l.fence.Reason == lease.ReasonLost:
		return 0
	case l.over:
		return never
	}
	return l.holder.terms.hardDeadline(l.end) - l.holder.clock.Monotonic()
}
