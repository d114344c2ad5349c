package holder

import (
	"container/heap"
	"time"
)

// never is a moment that does not come.
const never = time.Duration(1<<63 - 1)

// entry is a lease's place in the schedule.
type entry struct {
	at    time.Duration // when the lease has to be looked at
	index int           // in the schedule, or -1
}

// schedule is a heap of leases by the time at which they have to be looked at.
type schedule []*Lease

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].entry.at < s[j].entry.at }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].entry.index, s[j].entry.index = i, j
}

func (s *schedule) Push(x any) {
	l := x.(*Lease)
	l.entry.index = len(*s)
	*s = append(*s, l)
}

func (s *schedule) Pop() any {
	last := len(*s) - 1
	l := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	l.entry.index = -1
	return l
}

// scheduleLocked has the lease looked at when it is due, or at its deadline. It is
// called with the lease's mutex held, for a lease that has not ended.
func (l *Lease) scheduleLocked() {
	at := never
	if !l.turns.busy {
		at = l.due
	}
	if l.fence == nil {
		at = min(at, l.deadlineLocked())
	}
	l.holder.put(l, at)
}

// put changes when l is looked at. It does nothing for a lease that was dropped.
func (h *Holder) put(l *Lease, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.leases[l]; !known {
		return
	}
	l.entry.at = at
	if l.entry.index < 0 {
		heap.Push(&h.schedule, l)
	} else {
		heap.Fix(&h.schedule, l.entry.index)
	}
	if at < h.armed {
		h.poke()
	}
}

// drop has l not looked at any more.
func (h *Holder) drop(l *Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.leases, l)
	if l.entry.index >= 0 {
		heap.Remove(&h.schedule, l.entry.index)
	}
}

// takeDue takes those leases out of the schedule that have to be looked at by now; and
// if there are any, those that come soon after, so that they can travel together. Each
// is put back by looking at it.
func (h *Holder) takeDue(now time.Duration) []*Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = 0 // being awake
	if len(h.schedule) == 0 || h.schedule[0].entry.at > now {
		return nil
	}
	var due []*Lease
	for soon := now + h.terms.interval()/8; len(h.schedule) > 0 && h.schedule[0].entry.at <= soon; {
		due = append(due, heap.Pop(&h.schedule).(*Lease))
	}
	return due
}

// arm returns when the schedule has to be looked at next, and wants to be poked if that
// changes.
func (h *Holder) arm() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.armed = never
	if len(h.schedule) > 0 {
		h.armed = h.schedule[0].entry.at
	}
	return h.armed
}

func (h *Holder) poke() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}
