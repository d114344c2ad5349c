package feed

import "github.com/leasenode/leasenode/lease"

// reading is one Next.
type reading struct {
	watcher *Watcher
	room    int
	began   place // of watcher, before the first that was picked
	picked  []picked
	bytes   int
	now     lease.Instant // of the last event examined
	batch   Batch
}

// picked are an event and its group, which nobody changes any more.
type picked struct {
	group *group
	event *event
}

// look reads a bounded number of events, and reports whether the batch is complete.
func (r *reading) look() (done bool, err error) {
	w, f := r.watcher, r.watcher.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := w.keptLocked(); err != nil {
		return false, err
	}
	if w.waitsIn != nil {
		return true, r.upToHeadLocked()
	}
	if len(r.picked) == 0 {
		r.began = w.place
	}
	cursors := [2]cursor{lifecycle: f.rings[lifecycle].from(w.place)}
	if w.wants.Renewals {
		cursors[renewals] = f.rings[renewals].from(w.place)
	}
	for range maxExamined {
		g, e, ok := next(&cursors)
		if !ok {
			w.waitLocked()
			return true, r.upToHeadLocked()
		}
		if g.index != w.place.index && r.good() {
			return true, r.upTo(w.place.index)
		}
		w.place, r.now = place{g.index, e.order}, g.now
		if !w.wants.has(e.keyText()) {
			continue
		}
		r.picked = append(r.picked, picked{g, e})
		if r.bytes += e.bytes(); r.full() {
			r.batch.More = true
			return true, nil
		}
	}
	return false, nil
}

// cut closes the batch at the last end of an entry up to which it has no more than room
// bytes; what comes after that counts as not read.
func (r *reading) cut(room int) error {
	cut, bytes, first := 0, 0, 0
	for i, p := range r.picked {
		if i > 0 && p.group.index != r.picked[i-1].group.index {
			cut = i
		}
		if bytes += p.event.bytes(); bytes > room && cut > 0 {
			break
		}
		if cut == 0 {
			first = bytes
		}
	}
	to := r.began
	if cut > 0 && first <= room {
		to = endOf(r.picked[cut-1].group.index)
	}
	r.watcher.back(to)
	if first > room {
		return &RoomError{Bytes: first}
	}
	last := r.picked[cut-1].group
	r.picked, r.batch = r.picked[:cut], Batch{Index: last.index, Now: last.now}
	return nil
}

// back has w read again what comes after to.
func (w *Watcher) back(to place) {
	w.feed.mu.Lock()
	defer w.feed.mu.Unlock()
	if w.waitsIn != nil {
		w.waitsIn.forget(w)
	}
	w.place = to
}

// next steps over the earlier of the events at which the cursors stand.
func next(cursors *[2]cursor) (*group, *event, bool) {
	g, e, ok := cursors[lifecycle].at()
	other, o, also := cursors[renewals].at()
	which := lifecycle
	if also && (!ok || place{other.index, o.order}.before(place{g.index, e.order})) {
		which, g, e, ok = renewals, other, o, true
	}
	if ok {
		cursors[which].step()
	}
	return g, e, ok
}

func (r *reading) good() bool {
	return len(r.picked) > 0 && r.bytes >= r.room || len(r.picked) >= goodEvents || r.bytes >= goodBytes
}

func (r *reading) full() bool { return len(r.picked) >= fullEvents || r.bytes >= fullBytes }

// waitLocked has w woken by what comes next for it, now that it has read everything.
func (w *Watcher) waitLocked() {
	f := w.feed
	if w.place.before(f.tail) {
		w.place = f.tail
	}
	select { // what woke it before has been read
	case <-w.ready:
	default:
	}
	if f.head.Index < f.tail.index {
		f.watching.partial.wait(w)
		return
	}
	w.join.wait(w)
}

// upToHeadLocked closes the batch of a watcher that has read everything.
func (r *reading) upToHeadLocked() error {
	w, f := r.watcher, r.watcher.feed
	if n := len(r.picked); n > 0 && r.picked[n-1].group.index > f.head.Index {
		r.batch.More = true
		return nil
	}
	r.batch.Index, r.batch.Now = f.head.Index, f.head.Now
	if w.place == endOf(w.place.index) { // it may have begun beyond the head
		r.batch.Index = max(r.batch.Index, w.place.index)
	}
	return nil
}

// upTo closes the batch at the end of an entry.
func (r *reading) upTo(index uint64) error {
	r.batch.Index, r.batch.Now = index, r.now
	return nil
}
