package faulty

import (
	"context"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// staleReads takes every node for the leader. Mutations that come to a follower are
// refused, as of old: it can not do them.
type staleReads struct{ honest }

func newStaleReads(h honest) (api.Consensus, api.State) { return staleReads{h}, h.state }

// Leads lies once there is a state to read.
func (s staleReads) Leads() bool { return s.ClusterID() != "" }

func (s staleReads) Confirm(context.Context) error { return nil }

func (s staleReads) Reading() (lease.Instant, bool) {
	now, _ := s.state.Clock()
	return now, true
}

// blind keeps the digests of the state to itself, so that no audit finds anything.
type blind struct{ api.State }

func newBlind(h honest) (api.Consensus, api.State) { return h, blind{h.state} }

func (blind) Digests() []fsm.Digest { return nil }

// retold is a state whose records are told otherwise than they are.
type retold struct {
	api.State
	tell func(lease.Record) lease.Record
}

func (r retold) Get(key string) (fsm.View, error) {
	view, err := r.State.Get(key)
	view.Record = r.tell(view.Record)
	return view, err
}

func (r retold) List(q fsm.ListQuery) (fsm.ListView, error) {
	view, err := r.State.List(q)
	for i := range view.Records {
		view.Records[i] = r.tell(view.Records[i])
	}
	return view, err
}

// retell tells the records of outcomes otherwise than they are.
func retell(outcomes []lease.Outcome, tell func(lease.Record) lease.Record) {
	for i := range outcomes {
		o := &outcomes[i]
		switch refusal := o.Err.(type) { //nolint:errorlint // the state machine's own, not wrapped
		case nil:
			o.Answer.Record = tell(o.Answer.Record)
		case *lease.HeldError:
			o.Err = &lease.HeldError{Record: tell(refusal.Record), Remaining: refusal.Remaining}
		case *lease.LostError:
			o.Err = &lease.LostError{Record: tell(refusal.Record), Remaining: refusal.Remaining}
		}
	}
}

// floorBack forgets the floor with each later grant.
type floorBack struct{ honest }

func newFloorBack(h honest) (api.Consensus, api.State) {
	return floorBack{h}, retold{h.state, withoutOldFloor}
}

func withoutOldFloor(r lease.Record) lease.Record {
	if r.ForgottenAtEpoch < r.Epoch {
		r.ForgottenAtEpoch = 0
	}
	return r
}

func (f floorBack) Propose(ctx context.Context, mutations []lease.Mutation) ([]lease.Outcome, error) {
	outcomes, err := f.Consensus.Propose(ctx, mutations)
	retell(outcomes, withoutOldFloor)
	return outcomes, err
}
