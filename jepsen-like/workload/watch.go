package workload

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// WatchSink takes down what watchers are told: a [history.Recorder].
type WatchSink interface {
	AddWatched(history.Watched)
}

// WatchEndpoint is a store to watch with the name under which it is recorded.
type WatchEndpoint struct {
	// Node is the node that is asked, "" if it can be any.
	Node    string
	Watcher lease.Watcher
}

// WatchOptions are what [StartWatchers] works with.
type WatchOptions struct {
	Seed uint64
	// Prefix is of the keys to watch.
	Prefix string
	// Any goes on by itself at another node; Endpoints are the nodes, each by itself.
	Any       lease.Watcher
	Endpoints []WatchEndpoint
	Now       func() time.Duration
	Sink      WatchSink
}

// The watchers: one that is told renewals, one that is not, and one that is cut off again
// and again and goes on elsewhere.
const (
	watchesAll   = "w-all"
	watchesQuiet = "w-quiet"
	watchesMoved = "w-moved"
)

// Watchers are watchers at work. Make them with [StartWatchers]; they have to be ended
// with Finish or Stop.
type Watchers struct {
	stop   context.CancelFunc
	again  context.CancelFunc // has each watch begin once more
	joined sync.WaitGroup
	all    []*watcher
	moved  chan struct{} // has a token when some watcher has come further
}

// StartWatchers has watchers follow the keys, until [Watchers.Finish] or
// [Watchers.Stop].
func StartWatchers(o WatchOptions) *Watchers {
	ctx, stop := context.WithCancel(context.Background())
	first, again := context.WithCancel(ctx)
	w := &Watchers{stop: stop, again: again, moved: make(chan struct{}, 1)}
	anywhere := []WatchEndpoint{{Watcher: o.Any}}
	for i, one := range []*watcher{
		{name: watchesAll, renewals: true, endpoints: anywhere},
		{name: watchesQuiet, endpoints: anywhere},
		{name: watchesMoved, renewals: true, endpoints: o.Endpoints, moves: true},
	} {
		one.WatchOptions, one.moved = o, w.moved
		one.random = rand.New(rand.NewPCG(o.Seed, uint64(i)+0x7761746368000000))
		w.all = append(w.all, one)
		w.joined.Go(func() { one.loop(ctx, first) })
	}
	return w
}

// Finish returns when all watchers were told everything up to index, or ctx ends; then
// none of them works any more.
func (w *Watchers) Finish(ctx context.Context, index uint64) {
	defer w.Stop()
	w.again() // a watch that begins is told at once how far it is
	for !w.reached(index) {
		select {
		case <-w.moved:
		case <-ctx.Done():
			return
		}
	}
}

// Stop returns when no watcher works any more. Idempotent.
func (w *Watchers) Stop() {
	w.stop()
	w.joined.Wait()
}

func (w *Watchers) reached(index uint64) bool {
	for _, one := range w.all {
		one.mu.Lock()
		last := one.last.Index
		one.mu.Unlock()
		if last < index {
			return false
		}
	}
	return true
}

const (
	// A watcher that moves stays for leastStay to leastStay + moreStay.
	leastStay, moreStay = 500 * time.Millisecond, 4 * time.Second
	// watchPause is between a watch that has ended and the next.
	watchPause = 50 * time.Millisecond
)

// watcher is one watcher.
type watcher struct {
	WatchOptions
	name      string
	renewals  bool
	endpoints []WatchEndpoint
	moves     bool
	random    *rand.Rand
	moved     chan<- struct{}

	seq  int
	node string
	now  lease.Instant // at last
	// open are the records or events that no position has come for.
	open    []history.Watched
	listing bool

	mu   sync.Mutex
	last lease.Position
}

// loop watches until ctx ends, anew whenever a watch has ended, as one does when first
// ends.
func (w *watcher) loop(ctx, first context.Context) {
	w.add(history.Watched{Mark: history.WatchBegan})
	turn := w.random.IntN(len(w.endpoints))
	for {
		parent := first
		if first.Err() != nil {
			parent = ctx
		}
		w.watchOnce(parent, w.endpoints[turn])
		if w.moves && len(w.endpoints) > 1 {
			turn = (turn + 1 + w.random.IntN(len(w.endpoints)-1)) % len(w.endpoints)
		}
		if !sleep(ctx, watchPause) {
			return
		}
	}
}

// watchOnce watches at one place until ctx ends or the watch does, or for a while.
func (w *watcher) watchOnce(ctx context.Context, at WatchEndpoint) {
	if w.moves {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, leastStay+time.Duration(w.random.Int64N(int64(moreStay))))
		defer cancel()
	}
	w.node = at.Node
	w.follow(ctx, at.Watcher)
	w.open, w.listing = nil, false
	if w.last != (lease.Position{}) {
		w.add(history.Watched{Mark: history.WatchReached, Index: w.last.Index, At: w.now})
	}
}

// follow takes one watch down, from where the last one ended.
func (w *watcher) follow(ctx context.Context, store lease.Watcher) {
	req := lease.WatchRequest{Prefix: w.Prefix, Renewals: w.renewals, After: w.last, Sync: true}
	for update, err := range store.Watch(ctx, req) {
		if invalid, ok := errors.AsType[*lease.InvalidError](err); ok {
			w.add(history.Watched{Mark: history.WatchRefused, Index: w.last.Index, Error: invalid.Error()})
		}
		if err != nil {
			return // and begins anew
		}
		w.take(update)
	}
}

// take notes an update. What it tells counts once it has a position to go on after: what
// is told without one is told again by the next watch.
func (w *watcher) take(u lease.WatchUpdate) {
	if u.Reset {
		w.open, w.listing = nil, true
		w.reach(lease.Position{})
	}
	for _, r := range u.Records {
		w.open = append(w.open, history.Watched{Mark: history.WatchListed, Key: r.Key, Owner: r.Owner, Epoch: r.Epoch, LeaseUntil: r.LeaseUntil, Floor: r.ForgottenAtEpoch})
	}
	for _, e := range u.Events {
		r := e.Record
		w.open = append(w.open, history.Watched{
			Mark: history.WatchTold, Event: e.Kind.String(), Key: r.Key, Owner: r.Owner, Epoch: r.Epoch,
			LeaseUntil: r.LeaseUntil, Floor: r.ForgottenAtEpoch, Index: e.Index, At: e.At,
		})
	}
	if u.Position == (lease.Position{}) {
		return
	}
	if w.listing {
		w.add(history.Watched{Mark: history.WatchReset, Index: u.Position.Index, At: u.Now})
		w.listing = false
	}
	for _, told := range w.open {
		w.add(told)
	}
	w.open, w.now = nil, u.Now
	w.reach(u.Position)
}

func (w *watcher) reach(p lease.Position) {
	w.mu.Lock()
	w.last = p
	w.mu.Unlock()
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

func (w *watcher) add(told history.Watched) {
	w.seq++
	told.Watcher, told.Seq, told.Node, told.Renewals, told.When = w.name, w.seq, w.node, w.renewals, w.Now()
	w.Sink.AddWatched(told)
}
