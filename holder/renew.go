package holder

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// mostSleep bounds how long the loop trusts a timer: timers of Go stand still while the
// machine sleeps, and the holder's clock does not.
const mostSleep = time.Second

// renewLoop looks at each lease when it is due, or has reached its deadline.
func (h *Holder) renewLoop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-h.stop:
			return
		case <-h.wake:
		case <-timer.C:
		}
		h.renewDue()
		timer.Reset(min(mostSleep, max(0, h.arm()-h.clock.Monotonic())))
	}
}

// renewDue sends the renewals that are due.
func (h *Holder) renewDue() {
	var due []renewal
	for _, l := range h.takeDue(h.clock.Monotonic()) {
		if bound, ok := l.look(); ok {
			due = append(due, renewal{l, bound})
		}
	}
	for _, batch := range inBatches(due) {
		h.joined.Go(func() { h.renewBatch(batch) })
	}
}

// look fences the lease if it is time, and takes the turn for an automatic renewal if
// one is due; it then returns true and the bound of the try. While another request is
// out, the renewal waits: whoever ends the last turn schedules it.
func (l *Lease) look() (bound time.Duration, due bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fence := l.lookLocked()
	if fence != nil && fence.Reason != lease.ReasonExpiredLocally {
		return 0, false
	}
	now := l.holder.clock.Monotonic()
	due = now >= l.early && l.turns.takeLocked()
	l.scheduleLocked()
	return l.boundLocked(now), due
}

// boundLocked returns how long one try of this lease may take.
func (l *Lease) boundLocked(now time.Duration) time.Duration {
	t := l.holder.terms
	return t.try(t.left(l.end, now))
}

// renewal is a lease whose turn it is to be renewed, in a try that may take bound.
type renewal struct {
	lease *Lease
	bound time.Duration
}

// inBatches divides renewals into those that travel together: at most as many as a
// request may carry, and none that may take more than twice as long as another, so
// that one which is about to end does not cut the others short.
func inBatches(due []renewal) [][]renewal {
	slices.SortFunc(due, func(a, b renewal) int { return cmp.Compare(a.bound, b.bound) })
	var batches [][]renewal
	for len(due) > 0 {
		n := 1
		for n < len(due) && n < lease.MaxBatchRenew && due[n].bound <= 2*due[0].bound {
			n++
		}
		batches = append(batches, due[:n])
		due = due[n:]
	}
	return batches
}

// renewBatch renews the leases of batch in one request, and passes their turns on.
func (h *Holder) renewBatch(batch []renewal) {
	ctx, cancel := context.WithTimeout(h.life, batch[0].bound)
	defer cancel()
	reqs := make([]lease.RenewRequest, len(batch))
	for i, r := range batch {
		reqs[i] = r.lease.renewRequest()
	}
	var outcomes []lease.Outcome
	sent := h.ask(ctx, nil, func(ctx context.Context) error {
		outcomes = h.sendRenewals(ctx, reqs)
		return outcomes[0].Err
	})
	var failures []error
	for i, r := range batch {
		err := r.lease.settle(sent, outcomes[i])
		if _, lost := asLost(err); err != nil && !lost {
			failures = append(failures, err)
		}
		r.lease.pass()
	}
	if len(failures) > 0 && h.life.Err() == nil {
		h.log.Warn("renewals failed, and will be tried again", "failed", len(failures), "of", len(batch), "error", failures[0])
	}
}

// sendRenewals sends one renewal as such, and several as a batch. It returns as many
// outcomes as there are requests.
func (h *Holder) sendRenewals(ctx context.Context, reqs []lease.RenewRequest) []lease.Outcome {
	if len(reqs) == 1 {
		answer, err := h.store.Renew(ctx, reqs[0])
		return []lease.Outcome{{Answer: answer, Err: err}}
	}
	outcomes, err := h.store.BatchRenew(ctx, reqs)
	if err == nil && len(outcomes) != len(reqs) {
		err = fmt.Errorf("%d renewals have %d outcomes: %w", len(reqs), len(outcomes), lease.ErrOutcomeUnknown)
	}
	if err != nil {
		outcomes = slices.Repeat([]lease.Outcome{{Err: err}}, len(reqs))
	}
	return outcomes
}

func (l *Lease) renewRequest() lease.RenewRequest {
	return lease.RenewRequest{Key: l.key, Owner: l.Owner(), Epoch: l.epoch, TTL: l.holder.terms.ttl}
}

// bounded returns ctx bounded to one try of l.
func (h *Holder) bounded(ctx context.Context, l *Lease) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return context.WithTimeout(ctx, l.boundLocked(h.clock.Monotonic()))
}

// renewOne renews l, whose turn the caller has.
func (h *Holder) renewOne(ctx context.Context, l *Lease) error {
	ctx, cancel := h.bounded(ctx, l)
	defer cancel()
	var outcome lease.Outcome
	sent := h.ask(ctx, nil, func(ctx context.Context) error {
		outcome.Answer, outcome.Err = h.store.Renew(ctx, l.renewRequest())
		return outcome.Err
	})
	if err := l.settle(sent, outcome); err != nil {
		return h.about("renew", l.key, err)
	}
	return nil
}

// forgetOne raises the floor of l, whose turn the caller has.
func (h *Holder) forgetOne(ctx context.Context, l *Lease) error {
	ctx, cancel := h.bounded(ctx, l)
	defer cancel()
	var answer lease.Answer
	var err error
	h.ask(ctx, nil, func(ctx context.Context) error {
		answer, err = h.store.Forget(ctx, lease.ForgetRequest{Key: l.key, Owner: l.Owner(), Epoch: l.epoch})
		return err
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, isLost := asLost(err)
	switch {
	case err == nil:
		l.floor = max(l.floor, answer.Record.ForgottenAtEpoch)
		return nil
	case isLost:
		l.lostLocked(lost)
	}
	return h.about("forget", l.key, err)
}

// releaseOne gives l back, whose turn the caller has.
func (h *Holder) releaseOne(ctx context.Context, l *Lease) error {
	var err error
	h.ask(ctx, nil, func(ctx context.Context) error {
		_, err = h.store.Release(ctx, lease.ReleaseRequest{Key: l.key, Owner: l.Owner(), Epoch: l.epoch})
		return err
	})
	if err != nil {
		return h.about("release", l.key, err)
	}
	return nil
}

// about says in err, an error of the store, what was asked for. A [*Client] has said it.
func (h *Holder) about(op, key string, err error) error {
	if _, ok := h.store.(*Client); ok {
		return err
	}
	return fmt.Errorf("%s %q: %w", op, key, err)
}
