package api

import (
	"slices"
	"time"
)

// relieve closes the connections that have kept the most for the longest, as many as it
// takes; also each that has kept its share and has others of its own wait.
func (o *outgoing) relieve(now time.Time) {
	o.mu.Lock()
	worst, free := o.overLocked(now)
	if free < o.most/reliefShare && o.fullLocked() {
		for _, l := range o.worstLocked(now) {
			if free >= o.most/reliefShare {
				break
			}
			if !slices.Contains(worst, l) {
				worst = append(worst, l)
				free += l.used
			}
		}
	}
	for _, l := range worst {
		for p := range l.parcels {
			p.dropped.Store(true)
		}
	}
	o.mu.Unlock()
	for _, l := range worst {
		o.logger.Warn("a connection is closed because what its watches were sent is not read, and others wait for the room", "client", l.RemoteAddr())
		o.closed()
		_ = l.Close()
	}
}

// overLocked returns the lines that have no room for a claim of their own and keep
// something, and what they have.
func (o *outgoing) overLocked(now time.Time) (over []*line, used int) {
	for s := range o.waiting {
		for _, l := range o.waiting[s] {
			if here, _ := l.fitsLocked(l.claims[s][0].least); !here && l.keepsLocked(now) > 0 && !slices.Contains(over, l) {
				over = append(over, l)
				used += l.used
			}
		}
	}
	return over, used
}

// fullLocked tells whether anybody waits because there is no room at all.
func (o *outgoing) fullLocked() bool {
	for s := range o.waiting {
		for _, l := range o.waiting[s] {
			if _, there := l.fitsLocked(l.claims[s][0].least); !there {
				return true
			}
		}
	}
	return false
}

// worstLocked returns the lines that keep something, the worst first.
func (o *outgoing) worstLocked(now time.Time) []*line {
	keeps := map[*line]float64{}
	var worst []*line
	for l := range o.lines {
		if k := l.keepsLocked(now); k > 0 {
			keeps[l] = k
			worst = append(worst, l)
		}
	}
	slices.SortFunc(worst, func(a, b *line) int {
		switch {
		case keeps[a] > keeps[b]:
			return -1
		case keeps[a] < keeps[b]:
			return 1
		}
		return 0
	})
	return worst
}
