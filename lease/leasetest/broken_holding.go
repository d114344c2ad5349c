package leasetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// RenewsForAnyone renews the current lease whoever asks: a stale holder keeps its
// successor's lease alive, and takes it for its own.
type RenewsForAnyone struct{ lease.Store }

// Renew asks as the holder.
func (s RenewsForAnyone) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	answer, err := s.Store.Renew(ctx, req)
	var lost *lease.LostError
	if errors.As(err, &lost) && lost.Remaining > 0 {
		req.Owner, req.Epoch = lost.Record.Owner, lost.Record.Epoch
		return s.Store.Renew(ctx, req)
	}
	return answer, err
}

// RenewsAfterEnd revives a lease that is over, as long as nobody else has come.
type RenewsAfterEnd struct{ lease.Store }

// Renew answers a late renewal as if it had been in time.
func (s RenewsAfterEnd) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	answer, err := s.Store.Renew(ctx, req)
	var lost *lease.LostError
	if !errors.As(err, &lost) || lost.Record.Owner != req.Owner || lost.Record.Epoch != req.Epoch {
		return answer, err
	}
	answer, err = s.Get(ctx, lease.GetRequest{Key: req.Key})
	answer.Record.LeaseUntil, answer.Remaining, answer.Changed = answer.Now.Add(req.TTL), req.TTL, true
	return answer, err
}

// ShortensLease lets a renewal move the end of a lease back, in what it answers.
type ShortensLease struct{ lease.Store }

// Renew answers with ttl from now.
func (s ShortensLease) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	answer, err := s.Store.Renew(ctx, req)
	answer.Record.LeaseUntil = min(answer.Record.LeaseUntil, answer.Now.Add(req.TTL))
	return answer, err
}

// OverstatesRemaining promises a renewed holder a millisecond more than there is.
type OverstatesRemaining struct{ lease.Store }

// Renew adds the millisecond.
func (s OverstatesRemaining) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	answer, err := s.Store.Renew(ctx, req)
	if err == nil {
		answer.Remaining += time.Millisecond
	}
	return answer, err
}

// ReleasesForAnyone ends the current lease whoever asks: a late release of an old
// holder ends its successor's lease.
type ReleasesForAnyone struct{ lease.Store }

// Release asks as the holder.
func (s ReleasesForAnyone) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	answer, err := s.Store.Release(ctx, req)
	var lost *lease.LostError
	if errors.As(err, &lost) && lost.Record.Epoch > 0 {
		req.Owner, req.Epoch = lost.Record.Owner, lost.Record.Epoch
		return s.Store.Release(ctx, req)
	}
	return answer, err
}

// ReleasesOnce refuses to release a finished lease again, so that whoever loses
// the answer to a release takes it for a failure.
type ReleasesOnce struct{ lease.Store }

// Release refuses what changed nothing.
func (s ReleasesOnce) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	answer, err := s.Store.Release(ctx, req)
	if err == nil && !answer.Changed {
		return lease.Answer{}, &lease.LostError{Record: answer.Record}
	}
	return answer, err
}

// DropsFloor forgets the forgotten floor with the grant that set it: it goes back
// to 0 at the next one.
type DropsFloor struct{ lease.Store }

// Acquire answers without the floor.
func (s DropsFloor) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	return withoutOldFloor(answer), err
}

// Get answers without the floor of an earlier grant.
func (s DropsFloor) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	answer, err := s.Store.Get(ctx, req)
	return withoutOldFloor(answer), err
}

func withoutOldFloor(answer lease.Answer) lease.Answer {
	if answer.Record.ForgottenAtEpoch < answer.Record.Epoch {
		answer.Record.ForgottenAtEpoch = 0
	}
	return answer
}

// ForgetsForAnyone sets the floor whoever asks and whenever: a stale holder erases
// what its successor writes.
type ForgetsForAnyone struct{ lease.Store }

// Forget asks as the holder.
func (s ForgetsForAnyone) Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
	answer, err := s.Store.Forget(ctx, req)
	var lost *lease.LostError
	if errors.As(err, &lost) && lost.Remaining > 0 {
		req.Owner, req.Epoch = lost.Record.Owner, lost.Record.Epoch
		return s.Store.Forget(ctx, req)
	}
	return answer, err
}

// ReversesBatch answers a batch of renewals in another order than it was asked.
type ReversesBatch struct{ lease.Store }

// BatchRenew turns the order round.
func (s ReversesBatch) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	outcomes, err := s.Store.BatchRenew(ctx, reqs)
	slices.Reverse(outcomes)
	return outcomes, err
}

// ReversesHistory answers history in another order than it happened.
type ReversesHistory struct{ lease.Store }

// History turns the order of each page round.
func (s ReversesHistory) History(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
	page, err := s.Store.History(ctx, req)
	slices.Reverse(page.Entries)
	return page, err
}

// ListsFinished lists keys whose lease is over among those that are held.
type ListsFinished struct{ lease.Store }

// List ignores the selection.
func (s ListsFinished) List(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
	req.Selection = lease.AllRecords
	return s.Store.List(ctx, req)
}
