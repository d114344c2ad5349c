package api

import (
	"context"
	"fmt"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// BatchRenew implements leasepb.LeaseServiceServer. A renewal outside a limit fails
// alone, and the others are proposed together.
func (s *leaseServer) BatchRenew(ctx context.Context, req *leasepb.BatchRenewRequest) (*leasepb.BatchRenewResponse, error) {
	n := len(req.GetRenewals())
	if n > lease.MaxBatchRenew {
		return nil, &lease.InvalidError{Field: "renewals", Problem: fmt.Sprintf("has %d", n), Limit: fmt.Sprintf("at most %d", lease.MaxBatchRenew)}
	}
	b := newRenewBatch(req.GetRenewals())
	if len(b.valid) == 0 {
		return &leasepb.BatchRenewResponse{Results: b.results, Leader: s.leader()}, nil
	}
	return answer(ctx, s, call[*leasepb.BatchRenewRequest, *leasepb.BatchRenewResponse]{
		subject: wire.Renewals(n), effect: wire.Mutates, request: req, there: leasepb.LeaseServiceClient.BatchRenew,
		here: func(ctx context.Context) (*leasepb.BatchRenewResponse, error) {
			outcomes, err := s.proposeAll(ctx, b.valid)
			if err != nil {
				return nil, err
			}
			b.settle(outcomes)
			return &leasepb.BatchRenewResponse{Results: b.results, Leader: s.leader()}, nil
		},
	})
}

// renewBatch keeps the results of a batch in the order of its renewals.
type renewBatch struct {
	results []*leasepb.RenewResult
	// valid are the renewals within the limits, places where their results go.
	valid  []lease.Mutation
	places []int
}

func newRenewBatch(renewals []*leasepb.RenewRequest) *renewBatch {
	b := &renewBatch{results: make([]*leasepb.RenewResult, len(renewals))}
	for i, r := range renewals {
		m, err := wire.RenewFromProto(r)
		if err != nil {
			b.results[i] = failed(err)
			continue
		}
		b.valid = append(b.valid, m)
		b.places = append(b.places, i)
	}
	return b
}

// settle fills in the outcomes of the valid renewals.
func (b *renewBatch) settle(outcomes []lease.Outcome) {
	for i, o := range outcomes {
		if o.Err != nil {
			b.results[b.places[i]] = failed(about(subjectOf(b.valid[i]), wire.Mutates, o.Err))
			continue
		}
		b.results[b.places[i]] = &leasepb.RenewResult{Result: &leasepb.RenewResult_Answer{Answer: wire.MutationAnswerToProto(o.Answer)}}
	}
}

func failed(err error) *leasepb.RenewResult {
	return &leasepb.RenewResult{Result: &leasepb.RenewResult_Failure{Failure: wire.FailureToProto(err)}}
}
