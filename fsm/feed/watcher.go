package feed

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/leasenode/leasenode/lease"
)

// ErrTooSlow ends a watch: what it has not read yet is kept no longer.
var ErrTooSlow = errors.New("the watcher was too slow")

// ErrRestored ends a watch: the state was replaced by a later one, and what happened
// between the two is not known here.
var ErrRestored = errors.New("the state was restored from a snapshot")

// GoneError refuses a watch whose start is not kept any more.
type GoneError struct {
	// Oldest is the index that everything after is still kept.
	Oldest uint64
}

func (e *GoneError) Error() string {
	return fmt.Sprintf("what came first is kept no longer: the oldest index to go on from is %d", e.Oldest)
}

// RoomError refuses to read the events of one entry, which are more than the caller has
// room for. Nothing was read.
type RoomError struct {
	// Bytes is what they take up.
	Bytes int
}

func (e *RoomError) Error() string {
	return fmt.Sprintf("the events of the next entry take up %d bytes, for which there is no room", e.Bytes)
}

// Selection says which events a watcher wants.
type Selection struct {
	// Key is the one key; if it is empty, Prefix says which.
	Key, Prefix string
	Renewals    bool
}

func (s Selection) has(key string) bool {
	if s.Key != "" {
		return key == s.Key
	}
	return strings.HasPrefix(key, s.Prefix)
}

const (
	// A batch is closed at the first end of an entry at which it has so much, or in the
	// midst of an entry when it has full as much: twice what an entry may have of
	// mutations, so that what one entry granted and released comes together.
	goodEvents, goodBytes = 1000, 256 << 10
	fullEvents, fullBytes = 10_000, 1 << 20
	// maxExamined is how many events are looked at without letting others in.
	maxExamined = 4096
)

// Watcher reads events. It is for one goroutine, and has to be closed.
type Watcher struct {
	feed  *Feed
	wants Selection
	ready chan struct{}
	join  *bucket

	// place is up to where this watcher has read; guarded by feed.mu, as what follows.
	// One that waits in its bucket has read everything that is in the rings.
	place   place
	waitsIn *bucket // nil if it does not wait
	waitsAt int     // in waitsIn.waiting
}

// Batch is what a watcher has read.
type Batch struct {
	Events []lease.Event
	// Index is up to where everything has been read, with the clock at Now. Neither is
	// set if there is More.
	Index uint64
	Now   lease.Instant
	// More says that the last of the events have others of the same entry after them.
	More bool
}

// Watch begins to read after the entry at index, which need not have come yet. Errors:
// [*GoneError], [*lease.ExhaustedError], [ErrClosed].
func (f *Feed) Watch(wants Selection, after uint64) (*Watcher, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &Watcher{feed: f, wants: wants, ready: make(chan struct{}, 1), place: endOf(after)}
	switch gone := f.goneLocked(wants); {
	case f.err != nil:
		return nil, f.err
	case f.watchers >= f.bounds.Watchers:
		return nil, &lease.ExhaustedError{Resource: "watchers on this node", Limit: uint64(f.bounds.Watchers)}
	case w.place.before(gone):
		return nil, &GoneError{Oldest: gone.index}
	}
	f.watchers++
	w.join = f.watching.join(wants)
	return w, nil
}

// Oldest returns the lowest index after which a watcher of wants can begin.
func (f *Feed) Oldest(wants Selection) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.goneLocked(wants).index
}

// goneLocked returns the place up to which something is missing for wants.
func (f *Feed) goneLocked(wants Selection) place {
	gone := f.rings[lifecycle].gone
	if also := f.rings[renewals].gone; wants.Renewals && gone.before(also) {
		gone = also
	}
	return gone
}

// Close ends the reading.
func (w *Watcher) Close() {
	f := w.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if w.waitsIn != nil {
		w.waitsIn.forget(w)
	}
	f.watching.leave(w.wants)
	f.watchers--
}

// Ready gives something when there may be something to read for a watcher whose Next
// has given no events.
func (w *Watcher) Ready() <-chan struct{} { return w.ready }

// Kept returns [ErrTooSlow], [ErrRestored] or [ErrClosed] if Next would, and reads
// nothing.
func (w *Watcher) Kept() error {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	return w.keptLocked()
}

func (w *Watcher) keptLocked() error {
	switch f := w.feed; {
	case f.err != nil:
		return f.err
	case w.waitsIn != nil || !w.place.before(f.goneLocked(w.wants)):
		return nil
	case w.place.before(f.rebuilt):
		return ErrRestored
	default:
		return ErrTooSlow
	}
}

// Next is NextWithin any room.
func (w *Watcher) Next() (Batch, error) { return w.NextWithin(math.MaxInt) }

// NextWithin returns what comes next, without waiting for it: without events if there is
// nothing yet. The events have at most room bytes, as the feed counts them: its texts and
// 56 bytes for each. Errors: [*RoomError] if those of one entry are more, [ErrTooSlow],
// [ErrRestored], [ErrClosed].
func (w *Watcher) NextWithin(room int) (Batch, error) {
	r := reading{watcher: w, room: room}
	for done := false; !done; {
		var err error
		if done, err = r.look(); err != nil {
			return Batch{}, err
		}
	}
	if r.bytes > room {
		if err := r.cut(room); err != nil {
			return Batch{}, err
		}
	}
	for _, p := range r.picked {
		r.batch.Events = append(r.batch.Events, lease.Event{Kind: p.event.kind, Record: p.event.record(), Index: p.group.index, At: p.group.now})
	}
	return r.batch, nil
}
