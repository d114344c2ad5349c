package feed

import (
	"github.com/leasenode/leasenode/lease"
)

const (
	// maxGroupEvents and maxGroupBytes are when a group is full. What is taken from the
	// ends at a time is as many.
	maxGroupEvents = 1000
	maxGroupBytes  = 1 << 20
)

// turn makes the events of e: first of the leases that its clock has found over, then
// of what it did.
func (f *Feed) turn(e Entry) error {
	t := turning{feed: f, entry: e}
	for {
		over := f.ends.takeOver(e.Now, maxGroupEvents)
		if len(over) == 0 {
			break
		}
		records, err := t.recordsOf(over)
		if err != nil {
			return err
		}
		for _, r := range records {
			t.add(lease.Expired, r)
		}
	}
	for i := range e.Changes {
		c := &e.Changes[i]
		f.ends.move(c.Before, c.After, e.Now)
		t.add(lease.EventOf(c.Op), c.After)
	}
	t.finish()
	return nil
}

// turning is an entry while its events are made.
type turning struct {
	feed   *Feed
	entry  Entry
	order  uint32 // of the last event; they begin with 1
	groups [2]*group
	events int // in groups: those up to order
	bytes  int
	// before has the records of keys before the first change after the ends were
	// compared with the clock, as far as entries up to index changed them.
	before map[string]lease.Record
	index  uint64
}

func (t *turning) add(kind lease.EventKind, r lease.Record) {
	class := lifecycle
	if kind == lease.Renewed {
		class = renewals
	}
	if t.groups[class] == nil {
		t.groups[class] = &group{index: t.entry.Index, now: t.entry.Now}
	}
	t.order++
	made := newEvent(kind, t.order, r)
	g := t.groups[class]
	g.events = append(g.events, made)
	t.events++
	if t.bytes += made.bytes(); t.events >= maxGroupEvents || t.bytes >= maxGroupBytes {
		t.publish()
	}
}

// publish puts what was made into the rings, and wakes those who want it. More of the
// entry is to come.
func (t *turning) publish() {
	t.feed.mu.Lock()
	defer t.feed.mu.Unlock()
	t.publishLocked()
}

// finish publishes the rest, and moves the head in the same instant: nobody reads all of
// a short entry and is told that there is more of it.
func (t *turning) finish() {
	f := t.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	t.publishLocked()
	f.head, f.tail = Head{t.entry.Index, t.entry.Now}, endOf(t.entry.Index)
	f.watching.wakePartial()
	f.movedLocked()
}

func (t *turning) publishLocked() {
	if t.events == 0 {
		return
	}
	f := t.feed
	seen := place{t.entry.Index, t.order - uint32(t.events)}
	for class, g := range t.groups {
		if g == nil {
			continue
		}
		f.rings[class].add(g)
		for i := range g.events {
			f.watching.wake(class, g.events[i].keyText(), seen)
		}
	}
	f.tail = place{t.entry.Index, t.order}
	f.watching.wakePartial()
	t.groups, t.events, t.bytes = [2]*group{}, 0, 0
}

// recordsOf returns the records of keys as they were just before the entry. The state
// may be ahead of it by everything that is queued: what was changed since then is told
// by the changes.
func (t *turning) recordsOf(keys []string) ([]lease.Record, error) {
	if t.before == nil {
		t.before, t.index = map[string]lease.Record{}, t.entry.Index
		t.learn(t.entry)
	}
	records, index, err := t.feed.state.Records(keys)
	if err != nil {
		return nil, err
	}
	waiting, ok := t.feed.queue.since(index)
	if !ok || index < t.entry.Index {
		return nil, errVoid
	}
	for _, e := range waiting {
		if e.Index > t.index && e.Index <= index {
			t.learn(e)
		}
	}
	t.index = max(t.index, index)
	for i, key := range keys {
		if r, changed := t.before[key]; changed {
			records[i] = r
		}
	}
	return records, nil
}

func (t *turning) learn(e Entry) {
	for i := range e.Changes {
		c := &e.Changes[i]
		if _, known := t.before[c.After.Key]; !known {
			t.before[c.After.Key] = c.Before
		}
	}
}
