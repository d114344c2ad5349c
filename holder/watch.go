package holder

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

const (
	// firstWord is how long a node may take to begin a watch. It doubles with each round
	// of all nodes that has failed, up to watchSilence, which is how long a node may be
	// silent later: nodes tell the position every 5 s.
	firstWord    = 3 * time.Second
	watchSilence = 15 * time.Second
	// maxWatchPause bounds the pauses between tries. They grow longer than those of other
	// calls: thousands of watches may have to begin anew at once.
	maxWatchPause = 4 * time.Second
)

var _ lease.Watcher = (*Client)(nil)

// Watch implements [lease.Watcher]. It reads from any endpoint; when a node fails, is
// cut off or cuts the watch off, it goes on at the next from where it was. It goes on
// trying until ctx ends, however long no node answers. The error then is ctx's, with its
// cause, and [lease.ErrUnavailable] only if no node has served the watch within the
// last second.
//
// An update may have neither events nor records: it tells the position, every few
// seconds while nothing happens. While no node answers there is none: see [WithLogger].
// While the caller is busy with an update, nothing is read; a caller that is busy for long
// is caught up with what is kept for it, and when that does not go back far enough, the
// watch ends with a [*lease.CompactedError], or begins with a new listing if it has Sync.
func (c *Client) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return c.follow(ctx, req, subjectOfWatch(req))
}

// follow is Watch, with what was asked for as errors say it.
func (c *Client) follow(ctx context.Context, req lease.WatchRequest, subject string) iter.Seq2[lease.WatchUpdate, error] {
	return func(yield func(lease.WatchUpdate, error) bool) {
		if err := req.Validate(); err != nil {
			yield(lease.WatchUpdate{}, err)
			return
		}
		w := &watch{conns: c.conns, request: req, subject: subject, last: req.After, turn: rand.IntN(len(c.conns.endpoints))}
		if err := w.run(ctx, yield); !errors.Is(err, errTaken) {
			yield(lease.WatchUpdate{}, err)
		}
	}
}

// errTaken says that the caller wants no more.
var errTaken = errors.New("the caller wants no more")

// errSilent says that a node has taken a watch and told nothing for too long.
var errSilent = fmt.Errorf("it told nothing for too long: %w", lease.ErrUnavailable)

// unansweredError says that no node has said anything about what was asked for.
type unansweredError struct{ subject string }

func (e *unansweredError) Error() string { return e.subject + ": no node has answered" }
func (e *unansweredError) Unwrap() error { return lease.ErrUnavailable }

// watch is one Watch, over all nodes that it reads from.
type watch struct {
	conns   *conns
	request lease.WatchRequest
	subject string // as in `watch "k"`
	// last is the position after the last update that had one; zero before the first,
	// and while a listing is awaited.
	last lease.Position
	// told is which events the caller has been given. All nodes have the same in the same
	// order, so those are left out when the watch goes on elsewhere.
	told told
	turn int // the endpoint that is next
}

// told stands for the events of the log entries before index, and so many of its own.
type told struct {
	index  uint64
	events int
}

func subjectOfWatch(req lease.WatchRequest) string {
	switch {
	case req.Key != "":
		return fmt.Sprintf("watch %q", req.Key)
	case req.Prefix != "":
		return fmt.Sprintf("watch all that begins with %q", req.Prefix)
	default:
		return "watch all keys"
	}
}

// servedLately is for how long after a node has served a watch the end of its context is
// no failure of the cluster.
const servedLately = time.Second

// run reads from one node after the other. It returns [errTaken], or why it cannot go on.
func (w *watch) run(ctx context.Context, yield func(lease.WatchUpdate, error) bool) error {
	var last telling
	var refused error    // a refusal that another node need not share
	var served time.Time // the end of the latest stream that told something
	for failures := 0; ; failures++ {
		addr := w.conns.endpoints[w.turn]
		rounds := failures / len(w.conns.endpoints)
		begun, failed := w.read(ctx, addr, min(firstWord<<min(rounds, 10), watchSilence), yield)
		if errors.Is(failed, errTaken) {
			return failed
		}
		if begun {
			failures, refused, last, served = 0, nil, telling{}, time.Now()
		}
		// A node ends the stream of a deadline that has passed, maybe before this side knows.
		if ended := endOf(ctx); ended != nil && time.Since(served) < servedLately {
			return fmt.Errorf("%s: the context has ended: %w", w.subject, ended)
		}
		err := w.explain(addr, failed)
		if ctx.Err() != nil && last.err == nil { // it was not given its time
			err = &unansweredError{w.subject}
		}
		last.take(ctx, failed, err)
		if ctx.Err() == nil {
			w.conns.heard(ctx, addr, failed)
		}
		if ctx.Err() != nil || errors.Is(failed, errClientClosed) {
			return giveUp(ctx, last.err, nil)
		}
		switch lease.CodeOf(err) {
		case lease.CodeUnavailable, lease.CodeWatchTooSlow:
		case lease.CodeCompacted, lease.CodeExhausted:
			refused = err
		default:
			return err
		}
		w.turn = (w.turn + 1) % len(w.conns.endpoints)
		if refused != nil && failures+1 >= len(w.conns.endpoints) {
			if lease.CodeOf(refused) != lease.CodeCompacted || !w.request.Sync {
				return refused
			}
			w.last, w.told, refused = lease.Position{}, told{}, nil
		}
		most := min(maxWatchPause, firstPause<<min(failures, 10))
		sleep(ctx, most/2+rand.N(most/2))
	}
}

// explain returns what the end of a stream from addr was.
func (w *watch) explain(addr string, failed error) error {
	err := wire.FromCall(failed, wire.Reads)
	if wire.Answered(failed) {
		return err
	}
	return fmt.Errorf("%s at %s: %w", w.subject, addr, err)
}

// read reads from one node, which may take wait to begin, until that fails, and reports
// whether it had begun.
func (w *watch) read(ctx context.Context, addr string, wait time.Duration, yield func(lease.WatchUpdate, error) bool) (begun bool, failed error) {
	conn, release, err := w.conns.lane(addr)
	if err != nil {
		return false, err
	}
	defer release()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	patience := time.AfterFunc(wait, func() { cancel(errSilent) })
	defer patience.Stop()
	defer func() { // what a call says that was ended so is that its context was
		if failed != nil && errors.Is(context.Cause(ctx), errSilent) {
			failed = errSilent
		}
	}()
	req := w.request
	req.After = w.last
	req.Sync = w.request.Sync && w.last == (lease.Position{})
	stream, err := leasepb.NewLeaseServiceClient(conn).Watch(ctx, wire.WatchToProto(req))
	if err != nil {
		return false, err
	}
	again := w.told // what this stream tells again
	for {
		u, err := receive(stream)
		patience.Stop()
		if err != nil {
			return begun, err
		}
		w.conns.heard(ctx, addr, nil)
		u.Reset = req.Sync && !begun
		begun = true
		u.Events = w.untold(u.Events, &again)
		if u.Position.Index < w.told.index { // of a node that is behind what it cannot know
			u.Position, u.Now = lease.Position{}, 0
		}
		if u.Position != (lease.Position{}) {
			w.last = u.Position
		}
		if !yield(u, nil) {
			return true, errTaken
		}
		patience.Reset(watchSilence)
	}
}

func receive(stream grpc.ServerStreamingClient[leasepb.WatchResponse]) (lease.WatchUpdate, error) {
	m, err := stream.Recv()
	if err != nil {
		return lease.WatchUpdate{}, err
	}
	u, err := wire.UpdateFromProto(m)
	if err != nil {
		return lease.WatchUpdate{}, fmt.Errorf("%w: %w", lease.ErrUnavailable, err)
	}
	return u, nil
}

// untold returns the events that the caller has not been given, and notes that it will
// be. again is what is still to be left out.
func (w *watch) untold(events []lease.Event, again *told) (untold []lease.Event) {
	for _, e := range events {
		switch {
		case e.Index < again.index:
			continue
		case e.Index == again.index && again.events > 0:
			again.events--
			continue
		case e.Index != w.told.index:
			w.told = told{index: e.Index}
		}
		w.told.events++
		untold = append(untold, e)
	}
	return untold
}
