package faulty

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/lease"
)

// seize has a lease ended in its owner's name, and then granted to whoever asks.
func (h honest) seize(ctx context.Context, held lease.Record, asked lease.Mutation) lease.Outcome {
	asked.RequestID = "" // it may name a grant of before
	outcomes, err := h.Consensus.Propose(ctx, []lease.Mutation{
		{Op: lease.OpRelease, Key: held.Key, Owner: held.Owner, Epoch: held.Epoch}, asked,
	})
	if err != nil {
		return lease.Outcome{Err: err}
	}
	return outcomes[1]
}

// seizures is how many refusals there are for one that is none.
const seizures = 5

// doubleGrant grants what is held, now and then.
type doubleGrant struct {
	honest
	refusals atomic.Uint64
}

func newDoubleGrant(h honest) (api.Consensus, api.State) { return &doubleGrant{honest: h}, h.state }

func (d *doubleGrant) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	outcomes, err := d.Consensus.Propose(ctx, mutations)
	for i := range outcomes {
		held, ok := errors.AsType[*lease.HeldError](outcomes[i].Err)
		if ok && held.Record.Owner != mutations[i].Owner && d.refusals.Add(1)%seizures == 0 {
			outcomes[i] = d.seize(ctx, held.Record, mutations[i])
		}
	}
	return outcomes, err
}

// Wait does the same to who waits in line.
func (d *doubleGrant) Wait(ctx context.Context, poll lease.Poll) (lease.Answer, error) {
	answer, err := d.Consensus.Wait(ctx, poll)
	held, ok := errors.AsType[*lease.HeldError](err)
	if !ok || held.Record.Owner == poll.Mutation.Owner || d.refusals.Add(1)%seizures != 0 {
		return answer, err
	}
	o := d.seize(ctx, held.Record, poll.Mutation)
	return o.Answer, o.Err
}

// forgetsRequests takes a retried acquire for a new one, and the lease that it was
// granted for over.
type forgetsRequests struct {
	honest
	mu   sync.Mutex
	seen map[string]bool // request ids of acquires that were granted
}

func newForgetsRequests(h honest) (api.Consensus, api.State) {
	return &forgetsRequests{honest: h, seen: map[string]bool{}}, h.state
}

func (f *forgetsRequests) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	outcomes, err := f.Consensus.Propose(ctx, mutations)
	for i := range outcomes {
		m, o := mutations[i], outcomes[i]
		if m.Op != lease.OpAcquire || m.RequestID == "" || o.Err != nil {
			continue
		}
		if f.again(m.RequestID) && !o.Answer.Changed {
			outcomes[i] = f.seize(ctx, o.Answer.Record, m)
		}
	}
	return outcomes, err
}

// again notes a request id, and reports whether it was known.
func (f *forgetsRequests) again(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.seen[id]
	f.seen[id] = true
	return known
}
