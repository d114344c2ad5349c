package wire

import (
	"fmt"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// OutcomesFromProto returns the outcomes of a BatchRenew of n renewals, in order. A
// result that cannot be understood is an unknown outcome; a wrong number of them is an
// error for the whole.
func OutcomesFromProto(p *leasepb.BatchRenewResponse, n int) ([]lease.Outcome, error) {
	if got := len(p.GetResults()); got != n {
		return nil, fmt.Errorf("%d results for %d renewals: %w", got, n, lease.ErrOutcomeUnknown)
	}
	outcomes := make([]lease.Outcome, n)
	for i, result := range p.GetResults() {
		switch r := result.GetResult().(type) {
		case *leasepb.RenewResult_Answer:
			answer, err := AnswerFromProto(r.Answer)
			if err != nil {
				err = fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, err)
			}
			outcomes[i] = lease.Outcome{Answer: answer, Err: err}
		case *leasepb.RenewResult_Failure:
			outcomes[i].Err = FailureFromProto(r.Failure, Mutates)
		default:
			outcomes[i].Err = fmt.Errorf("a renewal without a result: %w", lease.ErrOutcomeUnknown)
		}
	}
	return outcomes, nil
}
