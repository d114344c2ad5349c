package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// Watching has the times and the room of watches. A zero field stands for its default.
type Watching struct {
	// Mark is how long a watch is silent at most: it tells its position then. And a
	// watch ends at the second such moment in a row at which the node knows no leader.
	// Default: 4 s, so that the 5 s that clients are promised hold.
	Mark time.Duration
	// Send is how long a client may take to take a message, and a message may wait for
	// room. Default: 30 s.
	Send time.Duration
	// Bytes is the room for messages that are on their way to all watchers of this node.
	// One connection may have an eighth of it. Default: 64 MiB, as much as is kept of what
	// has happened, and enough for 2,000 clients that have stopped within a listing.
	Bytes int
}

func (t Watching) withDefaults() Watching {
	return Watching{Mark: cmp.Or(t.Mark, 4*time.Second), Send: cmp.Or(t.Send, 30*time.Second), Bytes: cmp.Or(t.Bytes, 64<<20)}
}

// watch is one Watch. All of it is the handler's; its place in what there is to send is
// the watcher's, and nothing else is kept of it.
type watch struct {
	node    Node
	times   Watching
	feed    *feed.Feed
	metrics *watchMetrics
	rounds  *rounds
	stream  grpc.ServerStreamingServer[leasepb.WatchResponse]
	line    *line
	request lease.WatchRequest
	wants   feed.Selection
	sent    lease.Position // the last that was sent
	taken   int            // bytes that the client has taken
	began   feed.Head      // where a watch from now on begins
	// open is the log entry of which more is to be sent; 0 for none.
	open uint64
}

// Watch implements leasepb.LeaseServiceServer.
func (s *leaseServer) Watch(req *leasepb.WatchRequest, stream grpc.ServerStreamingServer[leasepb.WatchResponse]) error {
	r, err := wire.WatchFromProto(req)
	if err != nil {
		return err
	}
	w := &watch{
		node: s.node, times: s.node.Watching.withDefaults(), feed: s.node.State.Feed(), metrics: s.watches, rounds: &s.rounds, stream: stream, line: lineOf(stream.Context()),
		request: r, wants: feed.Selection{Key: r.Key, Prefix: r.Prefix, Renewals: r.Renewals}, sent: r.After,
	}
	if w.feed == nil || w.line == nil {
		return fmt.Errorf("%s: node %q does not serve watches here or now: %w", w.subject(), s.node.ID, lease.ErrUnavailable)
	}
	w.metrics.watchers.Inc()
	defer w.metrics.watchers.Dec()
	err = w.explain(w.run(stream.Context()))
	if _, slow := errors.AsType[*lease.TooSlowError](err); slow {
		w.metrics.cut.Inc()
	}
	return err
}

func (w *watch) subject() string {
	if w.request.Key != "" {
		return fmt.Sprintf("watch %q", w.request.Key)
	}
	return fmt.Sprintf("watch all that begins with %q", w.request.Prefix)
}

// explain turns the errors of the feed into what clients are told.
func (w *watch) explain(err error) error {
	gone, isGone := errors.AsType[*feed.GoneError](err)
	switch {
	case isGone && w.request.After != (lease.Position{}):
		return &lease.CompactedError{After: w.request.After, Oldest: w.position(gone.Oldest)}
	case errors.Is(err, feed.ErrTooSlow):
		return &lease.TooSlowError{Last: w.last()}
	case isGone, errors.Is(err, feed.ErrRestored), errors.Is(err, feed.ErrClosed):
		return fmt.Errorf("%s: node %q can not go on (%w), another can: %w", w.subject(), w.node.ID, err, lease.ErrUnavailable)
	case errors.Is(err, lease.ErrUnavailable):
		return fmt.Errorf("%s: %w", w.subject(), err)
	default:
		return err
	}
}

func (w *watch) position(index uint64) lease.Position {
	return lease.Position{ClusterID: w.node.Consensus.ClusterID(), Index: index}
}

// last returns the last position that was sent, or that of the cluster with index 0.
func (w *watch) last() lease.Position { return w.position(w.sent.Index) }

func (w *watch) run(ctx context.Context) error {
	start, err := w.start(ctx)
	if err != nil {
		return err
	}
	watcher, err := w.feed.Watch(w.wants, start)
	if err != nil {
		return err
	}
	defer watcher.Close()
	switch {
	case w.request.After != (lease.Position{}):
		return w.follow(ctx, watcher, time.Time{})
	case !w.request.Sync: // with it, what was sent last is the end of the listing
		// Whoever has no position yet gets one first: who loses the stream in the midst of an
		// entry goes on from there.
		if err := w.sendMark(ctx); err != nil {
			return err
		}
	}
	return w.follow(ctx, watcher, time.Now())
}

// sendMark tells where the watch begins.
func (w *watch) sendMark(ctx context.Context) error {
	p, err := w.take(ctx, size{smallBytes, smallBytes})
	if err != nil {
		return err
	}
	return w.sendBatch(ctx, p, feed.Batch{Index: w.began.Index, Now: w.began.Now}, true)
}

// follow sends what watcher reads. sent is when the last message was sent; zero if none
// was.
func (w *watch) follow(ctx context.Context, watcher *feed.Watcher, sent time.Time) error {
	timer := time.NewTimer(w.times.Mark)
	defer timer.Stop()
	lost := 0 // marks in a row at which no leader was known
	for {
		did, err := w.tell(ctx, watcher, time.Since(sent) >= w.times.Mark)
		if err != nil {
			return err
		}
		if did != toldNothing {
			sent = time.Now()
		}
		if did == toldEvents {
			lost = 0
			continue
		}
		wait := w.times.Mark - time.Since(sent)
		if wait <= 0 { // a mark is due, but not in the midst of an entry
			wait = w.times.Mark
		}
		timer.Reset(wait)
		select {
		case <-watcher.Ready():
		case <-timer.C:
			if lost++; w.node.Serves() {
				lost = 0
			}
			if lost > 1 {
				return fmt.Errorf("node %q knows no leader any more: %w", w.node.ID, lease.ErrUnavailable)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// told is what a watch was told.
type told uint8

const (
	toldNothing told = iota
	toldMark
	toldEvents
)

// tell sends what watcher has, or the position if it is due.
func (w *watch) tell(ctx context.Context, watcher *feed.Watcher, due bool) (told, error) {
	p, batch, err := w.next(ctx, watcher)
	if err != nil {
		return toldNothing, err
	}
	if len(batch.Events) > 0 {
		return toldEvents, w.sendBatch(ctx, p, batch, due)
	}
	if closes := !batch.More && batch.Index >= w.open; !closes || w.open == 0 && !due {
		return toldNothing, nil
	}
	if p, err = w.take(ctx, size{smallBytes, smallBytes}); err != nil {
		return toldNothing, err
	}
	return toldMark, w.sendBatch(ctx, p, batch, due)
}

// next reads what watcher has. If there are events there is room for the message of
// them, else the parcel is nil. While there is no room nothing is read: what waits for it
// is a place in the feed.
func (w *watch) next(ctx context.Context, watcher *feed.Watcher) (*parcel, feed.Batch, error) {
	var p *parcel
	for {
		room := 0 // mostly there is nothing, which can be known without any
		if p != nil {
			room = eventsIn(p.bytes)
		}
		batch, err := watcher.NextWithin(room)
		if err == nil && len(batch.Events) > 0 {
			return p, batch, nil
		}
		if p != nil {
			p.giveBack()
		}
		if err == nil {
			return nil, batch, nil
		}
		short, isShort := errors.AsType[*feed.RoomError](err)
		if !isShort {
			return nil, feed.Batch{}, err
		}
		least := roomFor(short.Bytes)
		if p, err = w.take(ctx, size{least, max(batchRoom, least)}); err != nil {
			return nil, feed.Batch{}, err
		}
	}
}

// sendBatch sends batch, for which p is. It keeps nothing of it while it waits.
func (w *watch) sendBatch(ctx context.Context, p *parcel, batch feed.Batch, leader bool) error {
	events, sent := len(batch.Events), w.sent
	u := lease.WatchUpdate{Events: batch.Events}
	if batch.More {
		w.open = batch.Events[events-1].Index
	} else {
		w.open, u.Position, u.Now = 0, w.position(batch.Index), batch.Now
		sent = u.Position
	}
	m := wire.UpdateToProto(u)
	if leader {
		m.Leader = wire.LeaderToProto(w.node.Consensus.Leader())
	}
	data, err := pack(m)
	if err != nil {
		p.giveBack()
		return err
	}
	if err := w.send(ctx, p, data); err != nil {
		return err
	}
	w.metrics.events.Add(float64(events))
	w.sent = sent
	return nil
}
