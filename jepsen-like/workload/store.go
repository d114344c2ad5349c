package workload

import (
	"context"
	"errors"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// Store is what clients need of a [lease.Store], as which each is one. To record one
// operation as one, a store must not try a mutation again that may have been done: a
// renewal that was given up can be done long after the one that took its place was
// answered, and then nobody would have asked for it.
type Store interface {
	Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error)
	Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error)
	Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error)
	Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error)
	Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error)
}

// Endpoint is a store with the name under which it is recorded.
type Endpoint struct {
	// Node is the node that is asked, "" if it can be any.
	Node  string
	Store Store
}

// OpSink takes operations down: a [history.Recorder].
type OpSink interface {
	NextID() int
	AddOp(op history.Op)
}

// asker asks for operations and takes them down.
type asker struct {
	now     func() time.Duration
	timeout time.Duration
	sink    OpSink
}

// ask sends op to a store, in one call that may take the asker's timeout, and returns
// it with what came of it. An operation that is out when ctx ends is waited for: what
// was given up has no known outcome, and would tell less.
func (a asker) ask(ctx context.Context, to Endpoint, op history.Op) history.Op {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.timeout)
	defer cancel()
	op.ID, op.Node, op.Tries = a.sink.NextID(), to.Node, 1
	op.Call = a.now()
	answer, err := send(ctx, to.Store, op)
	op.Return = a.now()
	settle(&op, answer, err)
	a.sink.AddOp(op)
	return op
}

func send(ctx context.Context, store Store, op history.Op) (lease.Answer, error) {
	switch op.Kind {
	case history.Acquire:
		return store.Acquire(ctx, lease.AcquireRequest{Key: op.Key, Owner: op.Owner, TTL: op.TTL, RequestID: op.RequestID})
	case history.Renew:
		return store.Renew(ctx, lease.RenewRequest{Key: op.Key, Owner: op.Owner, Epoch: op.Epoch, TTL: op.TTL})
	case history.Release:
		return store.Release(ctx, lease.ReleaseRequest{Key: op.Key, Owner: op.Owner, Epoch: op.Epoch})
	case history.Forget:
		return store.Forget(ctx, lease.ForgetRequest{Key: op.Key, Owner: op.Owner, Epoch: op.Epoch})
	case history.GetStale:
		return store.Get(ctx, lease.GetRequest{Key: op.Key, Consistency: lease.Stale})
	default:
		return store.Get(ctx, lease.GetRequest{Key: op.Key, Consistency: lease.Linearizable})
	}
}

// settle notes in op how it ended.
func settle(op *history.Op, answer lease.Answer, err error) {
	var (
		held      *lease.HeldError
		lost      *lease.LostError
		invalid   *lease.InvalidError
		exhausted *lease.ExhaustedError
	)
	reads := op.Kind == history.Get || op.Kind == history.GetStale
	switch {
	case err == nil:
		op.Outcome, op.Record, op.Changed = history.OK, answer.Record, answer.Changed
		op.Now, op.Remaining = lease.InstantOfMillis(answer.Now.Millis()), answer.Remaining
		return
	case reads: // it has changed nothing, whatever it is
		op.Outcome = history.Unavailable
	case errors.Is(err, lease.ErrOutcomeUnknown):
		op.Outcome = history.Unknown
	case errors.Is(err, lease.ErrUnavailable):
		op.Outcome = history.Unavailable
	case errors.As(err, &held):
		op.Outcome, op.Record, op.Remaining = history.Held, held.Record, held.Remaining
	case errors.As(err, &lost):
		op.Outcome, op.Record, op.Remaining = history.Lost, lost.Record, lost.Remaining
	case errors.As(err, &invalid):
		op.Outcome = history.Invalid
	case errors.As(err, &exhausted):
		op.Outcome = history.Exhausted
	default:
		op.Outcome = history.Unknown
	}
	op.Error = err.Error()
}
