package leasetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leasenode/leasenode/lease"
)

var _ lease.Watcher = (*Memory)(nil)

const (
	// markEvery is how long a watch is silent at most: it tells its position then.
	markEvery = 4 * time.Second
	// listedTogether is how many records one update of a listing has.
	listedTogether = 100
)

// Watch implements [lease.Watcher]. It runs on the goroutine that takes its elements,
// and begins when the first is asked for. Each log entry is one update, however many
// events it has.
//
// The end of a lease is told when the clock has passed it: at once if that is a
// [ManualClock] or built on one, else within 100 ms by package time.
func (m *Memory) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return func(yield func(lease.WatchUpdate, error) bool) {
		w := memoryWatch{store: m, request: req}
		if err := w.run(ctx, yield); err != nil {
			yield(lease.WatchUpdate{}, err)
		}
	}
}

// memoryWatch is one watch of a [Memory].
type memoryWatch struct {
	store   *Memory
	request lease.WatchRequest
	lists   bool      // a listing is next
	at      uint64    // the index up to which everything was told
	told    time.Time // when the last update was made; zero before the first
}

// run returns nil if the caller wants no more, and else why there is no more.
func (w *memoryWatch) run(ctx context.Context, yield func(lease.WatchUpdate, error) bool) error {
	if err := w.begin(); err != nil {
		return err
	}
	for {
		if ctx.Err() != nil {
			return w.ended(ctx)
		}
		updates, pause, err := w.next()
		if err != nil {
			return err
		}
		for _, u := range updates {
			if !yield(u, nil) {
				return nil
			}
		}
		if len(updates) == 0 {
			pause.wait(ctx)
		}
	}
}

func (w *memoryWatch) begin() error {
	if err := w.request.Validate(); err != nil {
		return err
	}
	m, after := w.store, w.request.After
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tickLocked()
	switch {
	case after == (lease.Position{}):
		w.at, w.lists = m.index, w.request.Sync
	case after.ClusterID != m.cluster:
		return &lease.InvalidError{Field: "after", Problem: fmt.Sprintf("is of cluster %.80q", after.ClusterID), Limit: fmt.Sprintf("a position of this one, %q", m.cluster)}
	case after.Index > m.index:
		return &lease.InvalidError{Field: "after", Problem: fmt.Sprintf("is %d, which is of the future", after.Index), Limit: fmt.Sprintf("a position that a watch has given, at most %d now", m.index)}
	default:
		w.at = after.Index
	}
	return nil
}

// ended returns ctx's error with its cause. Until the first update is made, nobody has
// served the watch.
func (w *memoryWatch) ended(ctx context.Context) error {
	err := context.Cause(ctx)
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	if w.told.IsZero() {
		err = fmt.Errorf("%w: %w", lease.ErrUnavailable, err)
	}
	return err
}

// next returns the updates that are next, or for what to wait.
func (w *memoryWatch) next() ([]lease.WatchUpdate, pause, error) {
	m := w.store
	moved := movedOf(m.clock) // before the clock is looked at
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.tickLocked()
	if w.at < m.events.gone {
		if !w.request.Sync {
			return nil, pause{}, &lease.CompactedError{After: m.position(w.at), Oldest: m.position(m.events.gone)}
		}
		w.lists = true
	}
	var updates []lease.WatchUpdate
	if w.lists {
		updates = m.listingLocked(w.request, now)
		w.lists, w.at = false, m.index
	} else if u := w.eventsLocked(now); len(u.Events) > 0 || time.Since(w.told) >= markEvery {
		updates = []lease.WatchUpdate{u}
	}
	if len(updates) == 0 {
		return nil, pause{news: m.events.awaited(), moved: moved, most: min(markEvery-time.Since(w.told), m.untilEndLocked(moved, now))}, nil
	}
	w.told = time.Now()
	return updates, pause{}, nil
}

// eventsLocked returns the update with what the next entry of interest did, or else
// one with nothing but the position.
func (w *memoryWatch) eventsLocked(now lease.Instant) lease.WatchUpdate {
	m := w.store
	for _, entry := range m.events.after(w.at) {
		w.at = entry.index
		if wanted := wanted(w.request, entry.events); len(wanted) > 0 {
			return lease.WatchUpdate{Events: wanted, Position: m.position(entry.index), Now: entry.now}
		}
	}
	w.at = m.index
	return lease.WatchUpdate{Position: m.position(w.at), Now: now}
}

// wanted returns copies of the events that req asks for.
func wanted(req lease.WatchRequest, events []lease.Event) (wanted []lease.Event) {
	for _, e := range events {
		if e.Kind == lease.Renewed && !req.Renewals || !watches(req, e.Record.Key) {
			continue
		}
		e.Record.Attributes = maps.Clone(e.Record.Attributes)
		wanted = append(wanted, e)
	}
	return wanted
}

func watches(req lease.WatchRequest, key string) bool {
	if req.Key != "" {
		return key == req.Key
	}
	return strings.HasPrefix(key, req.Prefix)
}

// listingLocked returns the updates of a listing of what there is now.
func (m *Memory) listingLocked(req lease.WatchRequest, now lease.Instant) []lease.WatchUpdate {
	var records []lease.Record
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		r := answerAt(m.keys[key].record, now).Record
		if watches(req, key) && (req.Selection == lease.AllRecords || !r.OverAt(now)) {
			records = append(records, r)
		}
	}
	var updates []lease.WatchUpdate
	for part := range slices.Chunk(records, listedTogether) {
		updates = append(updates, lease.WatchUpdate{Records: part})
	}
	updates = append(updates, lease.WatchUpdate{Synced: true, Position: m.position(m.index), Now: now})
	updates[0].Reset = true
	return updates
}

func (m *Memory) position(index uint64) lease.Position {
	return lease.Position{ClusterID: m.cluster, Index: index}
}

// untilEndLocked returns when to look at a clock that does not say when it moves.
func (m *Memory) untilEndLocked(moved <-chan struct{}, now lease.Instant) time.Duration {
	if moved != nil || len(m.events.ends) == 0 {
		return markEvery
	}
	return min(max(m.events.ends[0].at.Sub(now), time.Millisecond), recheck)
}

// pause is what a watch that has told everything waits for.
type pause struct {
	news, moved <-chan struct{}
	most        time.Duration
}

func (p pause) wait(ctx context.Context) {
	timer := time.NewTimer(p.most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-p.news:
	case <-p.moved:
	case <-timer.C:
	}
}
