package leasetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// PollsForTurn has no line: whoever waits tries again and again, the later the more
// often, and who does not wait may be quicker.
type PollsForTurn struct {
	lease.Store
	waits atomic.Int64
}

// Acquire tries until the wait is over.
func (s *PollsForTurn) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	pause := max(time.Millisecond, time.Second>>s.waits.Add(1))
	end := time.Now().Add(req.Wait)
	wait := req.Wait
	if wait < 0 || wait > lease.MaxWait {
		return s.Store.Acquire(ctx, req)
	}
	for req.Wait = 0; ; {
		answer, err := s.Store.Acquire(ctx, req)
		held, refused := err.(*lease.HeldError)
		if !refused || wait == 0 {
			return answer, err
		}
		held.Place = 1
		lease.TellWaiting(ctx, *held)
		if ctx.Err() != nil || !time.Now().Before(end) {
			return answer, held
		}
		select {
		case <-ctx.Done():
		case <-time.After(min(pause, time.Until(end))):
		}
	}
}

// GrantsTheDead leaves in line who has gone.
type GrantsTheDead struct{ lease.Store }

// Acquire answers when the caller leaves, and waits on.
func (s GrantsTheDead) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if req.Wait <= 0 {
		return s.Store.Acquire(ctx, req)
	}
	type result struct {
		answer lease.Answer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		answer, err := s.Store.Acquire(context.WithoutCancel(ctx), req)
		done <- result{answer, err}
	}()
	select {
	case r := <-done:
		return r.answer, r.err
	case <-ctx.Done():
		return lease.Answer{}, lease.ErrOutcomeUnknown
	}
}

// HidesPlace tells nobody where in line it is when the wait is over.
type HidesPlace struct{ lease.Store }

// Acquire forgets the place.
func (s HidesPlace) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	if held, ok := err.(*lease.HeldError); ok {
		held.Place = 0
	}
	return answer, err
}

// ForgetsPlace sends who waits again to the end of the line.
type ForgetsPlace struct{ lease.Store }

// Acquire takes every wait for an attempt of its own.
func (s ForgetsPlace) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if req.Wait > 0 {
		req.RequestID = ""
	}
	return s.Store.Acquire(ctx, req)
}

// ReleasesToAnyone releases in turn, whomever the key is to go to.
type ReleasesToAnyone struct{ lease.Store }

// Release drops the name.
func (s ReleasesToAnyone) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	req.To = ""
	return s.Store.Release(ctx, req)
}

// ClampsWait moves a wait into the limits instead of refusing it.
type ClampsWait struct{ lease.Store }

// Acquire moves the wait.
func (s ClampsWait) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	req.Wait = min(max(req.Wait, 0), lease.MaxWait)
	return s.Store.Acquire(ctx, req)
}

// ForgetsEnds hands over at a release only: whoever waits for a lease that ends by
// itself waits on.
type ForgetsEnds struct{ lease.Store }

// Acquire gives up a wait that was not ended by a release.
func (s ForgetsEnds) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	if err != nil || req.Wait <= 0 {
		return answer, err
	}
	page, err := s.History(ctx, lease.HistoryRequest{Key: req.Key, PageSize: lease.MaxPageSize})
	if n := len(page.Entries); err == nil && n > 1 && page.Entries[n-2].Op != lease.OpRelease {
		return lease.Answer{}, &lease.HeldError{Record: answer.Record, Place: 1}
	}
	return answer, err
}
