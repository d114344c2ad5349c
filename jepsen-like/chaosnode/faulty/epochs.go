package faulty

import (
	"context"
	"slices"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// constantEpoch tells epoch 1 of all grants, and takes it for the present one when it
// is told it.
type constantEpoch struct{ honest }

func newConstantEpoch(h honest) (api.Consensus, api.State) {
	return constantEpoch{h}, constantHistory{retold{h.state, atEpochOne}}
}

func atEpochOne(r lease.Record) lease.Record {
	r.Epoch, r.ForgottenAtEpoch = min(r.Epoch, 1), min(r.ForgottenAtEpoch, 1)
	return r
}

// constantHistory tells epoch 1 in history too.
type constantHistory struct{ retold }

func (c constantHistory) History(q fsm.HistoryQuery) (fsm.HistoryView, error) {
	view, err := c.State.History(q)
	for i := range view.Entries {
		view.Entries[i].Epoch = min(view.Entries[i].Epoch, 1)
	}
	return view, err
}

func (c constantEpoch) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	mutations = slices.Clone(mutations)
	for i := range mutations {
		if m := &mutations[i]; m.Epoch == 1 {
			if view, err := c.state.Get(m.Key); err == nil {
				m.Epoch = max(1, view.Record.Epoch)
			}
		}
	}
	outcomes, err := c.Consensus.Propose(ctx, mutations)
	retell(outcomes, atEpochOne)
	return outcomes, err
}

// renewsForAnyone asks for the present owner's renewal, whoever wants one.
type renewsForAnyone struct{ honest }

func newRenewsForAnyone(h honest) (api.Consensus, api.State) { return renewsForAnyone{h}, h.state }

func (r renewsForAnyone) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	mutations = slices.Clone(mutations)
	for i := range mutations {
		m := &mutations[i]
		if m.Op != lease.OpRenew {
			continue
		}
		if view, err := r.state.Get(m.Key); err == nil && view.Record.Epoch > 0 {
			m.Owner, m.Epoch = view.Record.Owner, view.Record.Epoch
		}
	}
	return r.Consensus.Propose(ctx, mutations)
}
