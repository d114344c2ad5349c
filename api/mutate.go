package api

import (
	"context"
	"fmt"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// Acquire implements leasepb.LeaseServiceServer.
func (s *leaseServer) Acquire(ctx context.Context, req *leasepb.AcquireRequest) (*leasepb.AcquireResponse, error) {
	poll, err := wire.PollFromProto(req)
	if err != nil {
		return nil, err
	}
	m := poll.Mutation
	return answer(ctx, s, call[*leasepb.AcquireRequest, *leasepb.AcquireResponse]{
		subject: subjectOf(m), effect: wire.Mutates, request: req, there: leasepb.LeaseServiceClient.Acquire,
		here: func(ctx context.Context) (*leasepb.AcquireResponse, error) {
			if poll.Wait > 0 {
				a, err := mutated(s.node.Consensus.Wait(ctx, poll))
				return &leasepb.AcquireResponse{Answer: a, Leader: s.leader()}, err
			}
			a, err := s.propose(ctx, m)
			return &leasepb.AcquireResponse{Answer: a, Leader: s.leader()}, err
		},
	})
}

// Renew implements leasepb.LeaseServiceServer.
func (s *leaseServer) Renew(ctx context.Context, req *leasepb.RenewRequest) (*leasepb.RenewResponse, error) {
	m, err := wire.RenewFromProto(req)
	if err != nil {
		return nil, err
	}
	return answer(ctx, s, call[*leasepb.RenewRequest, *leasepb.RenewResponse]{
		subject: subjectOf(m), effect: wire.Mutates, request: req, there: leasepb.LeaseServiceClient.Renew,
		here: func(ctx context.Context) (*leasepb.RenewResponse, error) {
			a, err := s.propose(ctx, m)
			return &leasepb.RenewResponse{Answer: a, Leader: s.leader()}, err
		},
	})
}

// Release implements leasepb.LeaseServiceServer.
func (s *leaseServer) Release(ctx context.Context, req *leasepb.ReleaseRequest) (*leasepb.ReleaseResponse, error) {
	m, err := wire.ReleaseFromProto(req)
	if err != nil {
		return nil, err
	}
	return answer(ctx, s, call[*leasepb.ReleaseRequest, *leasepb.ReleaseResponse]{
		subject: subjectOf(m), effect: wire.Mutates, request: req, there: leasepb.LeaseServiceClient.Release,
		here: func(ctx context.Context) (*leasepb.ReleaseResponse, error) {
			if to := string(req.GetTo()); to != "" {
				a, err := mutated(s.node.Consensus.ReleaseTo(ctx, m, to))
				return &leasepb.ReleaseResponse{Answer: a, Leader: s.leader()}, err
			}
			a, err := s.propose(ctx, m)
			return &leasepb.ReleaseResponse{Answer: a, Leader: s.leader()}, err
		},
	})
}

// Forget implements leasepb.LeaseServiceServer.
func (s *leaseServer) Forget(ctx context.Context, req *leasepb.ForgetRequest) (*leasepb.ForgetResponse, error) {
	m, err := wire.ForgetFromProto(req)
	if err != nil {
		return nil, err
	}
	return answer(ctx, s, call[*leasepb.ForgetRequest, *leasepb.ForgetResponse]{
		subject: subjectOf(m), effect: wire.Mutates, request: req, there: leasepb.LeaseServiceClient.Forget,
		here: func(ctx context.Context) (*leasepb.ForgetResponse, error) {
			a, err := s.propose(ctx, m)
			return &leasepb.ForgetResponse{Answer: a, Leader: s.leader()}, err
		},
	})
}

func (s *leaseServer) leader() *leasepb.Leader {
	return wire.LeaderToProto(s.node.Consensus.Leader())
}

func (s *leaseServer) propose(ctx context.Context, m lease.Mutation) (*leasepb.Answer, error) {
	outcomes, err := s.proposeAll(ctx, []lease.Mutation{m})
	if err != nil {
		return nil, err
	}
	return mutated(outcomes[0].Answer, outcomes[0].Err)
}

// mutated returns the answer to a mutation as it is on the wire.
func mutated(a lease.Answer, err error) (*leasepb.Answer, error) {
	if err != nil {
		return nil, err
	}
	return wire.MutationAnswerToProto(a), nil
}

// proposeAll returns as many outcomes as there are mutations.
func (s *leaseServer) proposeAll(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	outcomes, err := s.node.Consensus.Propose(ctx, mutations)
	if err == nil && len(outcomes) != len(mutations) {
		err = fmt.Errorf("%d mutations have %d outcomes: %w", len(mutations), len(outcomes), lease.ErrOutcomeUnknown)
	}
	return outcomes, err
}
