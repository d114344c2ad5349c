package feed

import (
	"cmp"
	"math"
	"slices"

	"github.com/leasenode/leasenode/lease"
)

// place is a place among all events: after the event of that order of the log entry at
// index.
type place struct {
	index uint64
	order uint32
}

// endOf returns the place after everything of the log entry at index.
func endOf(index uint64) place { return place{index, math.MaxUint32} }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.index, q.index), cmp.Compare(p.order, q.order))
}

func (p place) before(q place) bool { return p.compare(q) < 0 }

// group is some of the events of one log entry. Once it is in a ring it is never
// changed.
type group struct {
	index  uint64
	now    lease.Instant
	events []event // not empty; ascending by order
}

func (g *group) last() place { return place{g.index, g.events[len(g.events)-1].order} }

// ring is what is kept of one class of events. Not safe for concurrent use.
type ring struct {
	maxEvents, maxBytes int

	groups []*group
	first  int // of groups: those before it are gone
	events int
	bytes  int
	// gone is the place up to which something is missing.
	gone place
}

const groupBytes = 64

func (r *ring) add(g *group) {
	r.groups = append(r.groups, g)
	r.events += len(g.events)
	r.bytes += g.bytes()
	for (r.events > r.maxEvents || r.bytes > r.maxBytes) && len(r.groups)-r.first > 1 {
		oldest := r.groups[r.first]
		r.groups[r.first] = nil
		r.first++
		r.events -= len(oldest.events)
		r.bytes -= oldest.bytes()
		r.gone = oldest.last()
	}
	if r.first > 64 && r.first > len(r.groups)/2 {
		n := copy(r.groups, r.groups[r.first:])
		clear(r.groups[n:])
		r.groups, r.first = r.groups[:n], 0
	}
}

func (g *group) bytes() int {
	n := groupBytes
	for i := range g.events {
		n += g.events[i].bytes()
	}
	return n
}

// clear forgets everything up to the end of index.
func (r *ring) clear(index uint64) {
	r.groups, r.first, r.events, r.bytes, r.gone = nil, 0, 0, 0, endOf(index)
}

// cursor stands at an event of a ring, or at its end. It is good until the ring is
// changed.
type cursor struct {
	groups []*group
	event  int // in the first of groups
}

// from returns a cursor at the first event after p.
func (r *ring) from(p place) cursor {
	live := r.groups[r.first:]
	i, _ := slices.BinarySearchFunc(live, p, func(g *group, p place) int {
		if p.before(g.last()) {
			return 1
		}
		return -1
	})
	c := cursor{groups: live[i:]}
	if len(c.groups) > 0 && c.groups[0].index == p.index {
		events := c.groups[0].events
		c.event, _ = slices.BinarySearchFunc(events, p.order, func(e event, order uint32) int {
			if e.order > order {
				return 1
			}
			return -1
		})
	}
	return c
}

// at returns the group and the event where c stands; ok is false at the end.
func (c *cursor) at() (g *group, e *event, ok bool) {
	if len(c.groups) == 0 {
		return nil, nil, false
	}
	g = c.groups[0]
	return g, &g.events[c.event], true
}

func (c *cursor) step() {
	if c.event++; c.event == len(c.groups[0].events) {
		c.groups, c.event = c.groups[1:], 0
	}
}
