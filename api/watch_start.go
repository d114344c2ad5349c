package api

import (
	"context"
	"fmt"
	"time"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

const (
	// catchUpTimeout is how long a node may take to get to where others are.
	catchUpTimeout = 5 * time.Second
	// futureTries is how often the leader is asked whether it has come to a position
	// that nobody else can have been before, and futurePause how long between.
	futureTries = 5
	futurePause = 200 * time.Millisecond
	// listBytes is how large a message of a listing is, about. gRPC keeps a few of them for
	// each client that does not read, in buffers of 32 KiB, or of 1 MiB for larger ones.
	listBytes = 24 << 10
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

// list sends what there is, and returns the index of which state it is.
//
// Each page is read and done with before it is sent, however slow the client, so the
// pages are of different states. What has changed from the first to the last of them is
// sent again from the feed, as it came to be: with that the listing is the state of the
// last page.
func (w *watch) list(ctx context.Context) (uint64, error) {
	q := fsm.ListQuery{Prefix: w.request.Prefix, Selection: w.request.Selection, Limit: lease.MaxPageSize, MaxBytes: listBytes, MaxExamined: maxPageExamined}
	if w.request.Key != "" { // the first that begins with it
		q.Prefix, q.Limit = w.request.Key, 1
	}
	var changes *feed.Watcher
	for {
		view, err := w.node.State.List(q)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", err, lease.ErrUnavailable)
		}
		last := w.request.Key != "" || !view.More
		if last && changes == nil {
			return view.Index, w.sendListed(ctx, view, true)
		}
		if changes == nil {
			if changes, err = w.changesAfter(ctx, view.Index); err != nil {
				return 0, err
			}
			defer changes.Close()
		}
		if err := w.sendListed(ctx, view, false); err != nil {
			return 0, err
		}
		if last {
			if err := w.sendChanged(ctx, changes, view.Index); err != nil {
				return 0, err
			}
			return view.Index, w.sendListed(ctx, fsm.ListView{Index: view.Index, Now: view.Now}, true)
		}
		q.After = view.Next
	}
}

// changesAfter returns a watcher of all that changes records after index.
func (w *watch) changesAfter(ctx context.Context, index uint64) (*feed.Watcher, error) {
	if err := w.await(ctx, index); err != nil {
		return nil, err
	}
	wants := w.wants
	wants.Renewals = true
	return w.feed.Watch(wants, index)
}

// sendListed sends the records of a page, if there are any, or the end of the listing.
func (w *watch) sendListed(ctx context.Context, view fsm.ListView, synced bool) error {
	u := lease.WatchUpdate{Synced: synced}
	for _, r := range view.Records {
		if w.request.Key == "" || r.Key == w.request.Key {
			u.Records = append(u.Records, r)
		}
	}
	if synced {
		if err := w.await(ctx, view.Index); err != nil {
			return err
		}
		u.Position, u.Now = w.position(view.Index), view.Now
	}
	if !synced && len(u.Records) == 0 {
		return nil
	}
	if err := w.send(wire.UpdateToProto(u)); err != nil {
		return err
	}
	w.sent = u.Position
	return nil
}

// sendChanged sends, as parts of the listing, the records that have changed up to index.
func (w *watch) sendChanged(ctx context.Context, changes *feed.Watcher, index uint64) error {
	if err := w.await(ctx, index); err != nil {
		return err
	}
	for {
		batch, err := changes.Next()
		if err != nil {
			return err
		}
		changed := fsm.ListView{}
		for _, e := range batch.Events {
			if e.Index <= index && e.Kind != lease.Expired {
				changed.Records = append(changed.Records, e.Record)
			}
		}
		if err := w.sendListed(ctx, changed, false); err != nil {
			return err
		}
		if !batch.More && batch.Index >= index {
			return nil
		}
	}
}
