package leasetest

import (
	"cmp"
	"slices"

	"github.com/leasenode/leasenode/lease"
)

// maxEvents is how many events a [Memory] keeps; those of the latest log entry in any
// case.
const maxEvents = 10_000

// events are what the watches of a [Memory] tell. They are under its lock.
type events struct {
	ends    []end      // of the leases that are not over, in their order
	entries []happened // the latest, in log order
	kept    int        // how many events they have
	gone    uint64     // the index up to which something is kept no longer
	news    chan struct{}
}

// end is where a lease ends.
type end struct {
	at  lease.Instant
	key string
}

func (e end) compare(f end) int { return cmp.Or(cmp.Compare(e.at, f.at), cmp.Compare(e.key, f.key)) }

// happened are the events of one log entry.
type happened struct {
	index  uint64
	now    lease.Instant
	events []lease.Event
}

// changed notes what one operation of an entry made of a key.
func (e *events) changed(s step, index uint64, op lease.Op, before, after lease.Record) {
	if at, found := slices.BinarySearchFunc(e.ends, end{before.LeaseUntil, before.Key}, end.compare); found {
		e.ends = slices.Delete(e.ends, at, at+1)
	}
	if !after.OverAt(s.now) {
		ends := end{after.LeaseUntil, after.Key}
		at, _ := slices.BinarySearchFunc(e.ends, ends, end.compare)
		e.ends = slices.Insert(e.ends, at, ends)
	}
	e.add(s, lease.Event{Kind: lease.EventOf(op), Record: after, Index: index, At: s.now})
}

// takeOver removes and returns the leases that are over at now, in their order.
func (e *events) takeOver(now lease.Instant) []end {
	n := 0
	for n < len(e.ends) && e.ends[n].at <= now {
		n++
	}
	over := slices.Clone(e.ends[:n])
	e.ends = slices.Delete(e.ends, 0, n)
	return over
}

// add adds an event to the latest entry, or to a new one.
func (e *events) add(s step, event lease.Event) {
	last := len(e.entries) - 1
	if last < 0 || e.entries[last].index != event.Index {
		e.entries = append(e.entries, happened{index: event.Index, now: s.now})
		last++
	}
	e.entries[last].events = append(e.entries[last].events, event)
	for e.kept++; e.kept > maxEvents && len(e.entries) > 1; {
		e.drop()
	}
	if e.news != nil {
		close(e.news)
		e.news = nil
	}
}

// drop gives up the oldest entry.
func (e *events) drop() {
	e.gone = e.entries[0].index
	e.kept -= len(e.entries[0].events)
	e.entries[0] = happened{} // so that it is not held by what it was cut from
	e.entries = e.entries[1:]
}

// after returns the kept entries after index.
func (e *events) after(index uint64) []happened {
	at, _ := slices.BinarySearchFunc(e.entries, index+1, func(h happened, index uint64) int { return cmp.Compare(h.index, index) })
	return e.entries[at:]
}

// awaited returns a channel that is closed at the next event.
func (e *events) awaited() <-chan struct{} {
	if e.news == nil {
		e.news = make(chan struct{})
	}
	return e.news
}

// findEndsLocked tells, as the first thing in an entry, which leases its clock has
// found over. A second time in one entry there are none.
func (m *Memory) findEndsLocked(s step) {
	for _, over := range m.events.takeOver(s.now) {
		m.events.add(s, lease.Event{Kind: lease.Expired, Record: m.keys[over.key].record, Index: m.index, At: s.now})
	}
}

// tickLocked makes an entry for the leases that are over, if there are any, so that
// what a watch is told does not wait for somebody's operation. It returns the instant up
// to which they were found.
func (m *Memory) tickLocked() lease.Instant {
	now := m.nowLocked()
	if ends := m.events.ends; len(ends) > 0 && ends[0].at <= now {
		s := m.stepLocked()
		m.findEndsLocked(s)
		return s.now
	}
	return now
}

// Compact gives up all events that are kept, as happens by itself to all but the latest
// 10,000: a watch that goes on after a position from before the last of them ends with a
// [*lease.CompactedError], or begins anew with a listing.
func (m *Memory) Compact() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tickLocked()
	for len(m.events.entries) > 0 {
		m.events.drop()
	}
}
