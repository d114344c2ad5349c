package api

import (
	"context"
	"fmt"
	"time"

	"github.com/leasenode/leasenode/lease"
)

const (
	// catchUpTimeout is how long a node may take to get to where others are.
	catchUpTimeout = 5 * time.Second
	// futureTries is how often the leader is asked whether it has come to a position
	// that nobody else can have been before, and futurePause how long between.
	futureTries = 5
	futurePause = 200 * time.Millisecond
	// listBytes and listRecords are how much a message of a listing has at most: keys,
	// owners and attributes, and records. So much is on its way to each client that has
	// stopped within a listing.
	listBytes   = 24 << 10
	listRecords = 250
	// batchRoom is the room for a message of events, unless those of one entry need more.
	batchRoom = 128 << 10
)

// start returns the index after which the events are to come.
func (w *watch) start(ctx context.Context) (uint64, error) {
	if w.request.After != (lease.Position{}) {
		return w.request.After.Index, w.reach(ctx)
	}
	latest, err := w.latest(ctx)
	if err != nil {
		return 0, err
	}
	if err := w.await(ctx, latest); err != nil {
		return 0, err
	}
	if w.request.Sync {
		return w.list(ctx)
	}
	w.began = w.feed.Head()
	return w.began.Index, nil
}

// latest returns how far the leader is, so that a watch from now on does not begin with
// what was long ago on a node that has just been started. It is no proof.
func (w *watch) latest(ctx context.Context) (uint64, error) {
	if w.node.Consensus.Leads() {
		return w.node.State.AppliedIndex(), nil
	}
	leader := w.node.Consensus.Leader()
	if leader.ID == "" || leader.ID == w.node.ID {
		return 0, fmt.Errorf("node %q knows no leader now: %w", w.node.ID, lease.ErrUnavailable)
	}
	return w.rounds.do(ctx, func(ctx context.Context) (uint64, error) {
		ctx, cancel := context.WithTimeout(ctx, stateTimeout)
		defer cancel()
		state := w.node.askOne(ctx, leader.ID)
		if state.GetRole() != string(RoleLeader) || !state.GetHealthy() {
			return 0, fmt.Errorf("node %q can not find out from the leader %q how far the cluster is: %w", w.node.ID, leader.ID, lease.ErrUnavailable)
		}
		return state.GetAppliedIndex(), nil
	})
}

// await waits until the feed has come to index.
func (w *watch) await(ctx context.Context, index uint64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, catchUpTimeout, fmt.Errorf("node %q is behind, at %d of %d: %w", w.node.ID, w.feed.Head().Index, index, lease.ErrUnavailable))
	defer cancel()
	return w.feed.Await(ctx, index)
}

// reach checks the position of the request, and waits until this node has come to it if
// others have.
func (w *watch) reach(ctx context.Context) error {
	after := w.request.After
	refuse := func(problem, limit string) error {
		return &lease.InvalidError{Field: "after", Problem: problem, Limit: limit}
	}
	if id := w.node.Consensus.ClusterID(); after.ClusterID != id {
		return refuse(fmt.Sprintf("is of cluster %.80q", after.ClusterID), fmt.Sprintf("a position of this cluster, %q", id))
	}
	for try := 1; w.feed.Head().Index < after.Index; try++ {
		latest, err := w.latest(ctx)
		switch {
		case err != nil:
			return err
		case after.Index <= latest:
			return w.await(ctx, after.Index)
		case try == futureTries:
			return refuse(fmt.Sprintf("is %d, which is of the future", after.Index), fmt.Sprintf("a position that a watch has given, at most %d now", latest))
		}
		pause, cancel := context.WithTimeout(ctx, futurePause)
		_ = w.feed.Await(pause, after.Index) // the loop looks again
		cancel()
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}
