package leasetest

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// EvictsHolder grants a held key by ending the lease in the way: no compare and
// set.
type EvictsHolder struct{ lease.Store }

// Acquire releases for the holder first.
func (s EvictsHolder) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	var held *lease.HeldError
	if errors.As(err, &held) {
		return evict(ctx, s.Store, held, req)
	}
	return answer, err
}

func evict(ctx context.Context, s lease.Store, held *lease.HeldError, req lease.AcquireRequest) (lease.Answer, error) {
	release := lease.ReleaseRequest{Key: req.Key, Owner: held.Record.Owner, Epoch: held.Record.Epoch}
	if _, err := s.Release(ctx, release); err != nil {
		return lease.Answer{}, err
	}
	return s.Acquire(ctx, req)
}

// AdmitsHolderAgain takes an owner's second acquire for its first: two processes
// with one name both hold.
type AdmitsHolderAgain struct{ lease.Store }

// Acquire gives the holder its own lease again.
func (s AdmitsHolderAgain) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	var held *lease.HeldError
	if errors.As(err, &held) && held.Record.Owner == req.Owner {
		return s.Get(ctx, lease.GetRequest{Key: req.Key})
	}
	return answer, err
}

// ConstantEpoch answers every grant with epoch 1: no fencing token.
type ConstantEpoch struct{ lease.Store }

// Acquire hides the epoch.
func (s ConstantEpoch) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	answer.Record.Epoch = min(answer.Record.Epoch, 1)
	return answer, err
}

// GrantsRetryAnew takes the repetition of an attempt whose grant has ended for a
// new attempt.
type GrantsRetryAnew struct{ lease.Store }

// Acquire drops the request id of an ended grant.
func (s GrantsRetryAnew) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	var lost *lease.LostError
	if errors.As(err, &lost) {
		req.RequestID = ""
		return s.Store.Acquire(ctx, req)
	}
	return answer, err
}

// IgnoresRequestIDs takes every call for an attempt of its own, so that whoever
// loses an answer has to wait for its own lease to end.
type IgnoresRequestIDs struct{ lease.Store }

// Acquire drops the request id.
func (s IgnoresRequestIDs) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	req.RequestID = ""
	return s.Store.Acquire(ctx, req)
}

// ExpiresEarly takes a lease for over a millisecond before its end.
type ExpiresEarly struct{ lease.Store }

// Acquire ends a lease that has a millisecond to go.
func (s ExpiresEarly) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	answer, err := s.Store.Acquire(ctx, req)
	var held *lease.HeldError
	if errors.As(err, &held) && held.Remaining <= time.Millisecond {
		return evict(ctx, s.Store, held, req)
	}
	return answer, err
}

// ClampsTTL moves a ttl into the limits instead of refusing it.
type ClampsTTL struct{ lease.Store }

// Acquire moves the ttl.
func (s ClampsTTL) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	req.TTL = min(max(req.TTL, lease.MinTTL), lease.MaxTTL).Truncate(time.Millisecond)
	return s.Store.Acquire(ctx, req)
}

// KeepsAttributes adds the attributes of a grant to those of the one before.
type KeepsAttributes struct{ lease.Store }

// Acquire merges the attributes.
func (s KeepsAttributes) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	before, err := s.Get(ctx, lease.GetRequest{Key: req.Key})
	if err != nil || before.Record.Epoch == 0 {
		return s.Store.Acquire(ctx, req)
	}
	merged := map[string]string{}
	maps.Copy(merged, before.Record.Attributes)
	maps.Copy(merged, req.Attributes)
	req.Attributes = merged
	return s.Store.Acquire(ctx, req)
}
