package api

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/lease"
)

const (
	// smallBytes is what a message of a few events takes at most. Such messages have a part
	// of the room to themselves, so that they do not wait for large ones.
	smallBytes = 4 << 10
	// lineShare and reserveShare are the parts of the room that one connection may have,
	// and that only small messages may: an eighth each.
	lineShare, reserveShare = 8, 8
	// patience is how long a message may be on its way while others wait for room.
	patience = time.Second
	// reliefEvery is how often whoever waits looks for messages that are on their way for
	// longer, and reliefShare the part of the room that is made then.
	reliefEvery = 50 * time.Millisecond
	reliefShare = 16
)

// outgoing is the room, in bytes, for messages that are on their way to watchers: from
// before a message is made until gRPC has written it to the connection, or has given it
// up. All methods, and those of its lines and parcels, are safe for concurrent use.
//
// gRPC has no way to take back what one stream was given and its client does not read:
// when the handler has returned, that waits for the client as before. Only the end of
// the connection frees it. So while others wait, a connection that has kept much of the
// room for long is closed, and its clients go on elsewhere. Nobody is cut off for lack
// of room whose connection has taken everything within patience.
type outgoing struct {
	most   int
	logger hclog.Logger
	closed func() // counts connections that were closed

	mu   sync.Mutex
	used int
	// lines are those that have something on its way; waiting are those with claims, in
	// the order in which they are served.
	lines   map[*line]struct{}
	waiting []*line
	// duty has a token while one of those who wait sees to it that room is made.
	duty chan struct{}
}

func newOutgoing(most int, logger hclog.Logger, closed func()) *outgoing {
	return &outgoing{most: most, logger: logger, closed: closed, lines: map[*line]struct{}{}, duty: make(chan struct{}, 1)}
}

// Used returns how much of the room is taken.
func (o *outgoing) Used() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.used
}

// size is how much room somebody wants.
type size struct{ least, most int }

// claim is somebody who waits for room on a line.
type claim struct {
	size    size
	granted chan *parcel // has room for it
}

// take returns room for one message on l, as much of what is wanted as there is. It
// waits for that at most as long as timeout: [lease.ErrUnavailable] after it, or the
// error of ctx. The parcel has to be sent or released.
func (l *line) take(ctx context.Context, want size, timeout time.Duration) (*parcel, error) {
	o := l.out
	o.mu.Lock()
	if want.least <= smallBytes || len(o.waiting) == 0 {
		if p := l.grantLocked(want); p != nil {
			o.mu.Unlock()
			return p, nil
		}
	}
	c := &claim{size: want, granted: make(chan *parcel, 1)}
	if l.claims = append(l.claims, c); len(l.claims) == 1 {
		o.waiting = append(o.waiting, l)
	}
	o.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%d bytes are on their way to those who watch, and there is no room for more: %w", o.most, lease.ErrUnavailable))
	defer cancel()
	if p := o.await(ctx, c); p != nil {
		return p, nil
	}
	l.withdraw(c)
	return nil, context.Cause(ctx)
}

// await returns what c is granted; nil if ctx ends before. Of those who wait, one sees to
// it that room is made.
func (o *outgoing) await(ctx context.Context, c *claim) *parcel {
	duty := o.duty
	var tick <-chan time.Time
	for {
		select {
		case p := <-c.granted:
			return p
		case <-ctx.Done():
			return nil
		case duty <- struct{}{}:
			defer func() { <-o.duty }()
			ticker := time.NewTicker(reliefEvery)
			defer ticker.Stop()
			duty, tick = nil, ticker.C
		case <-tick:
			o.relieve(time.Now())
		}
	}
}

// withdraw takes back c, and what it was granted meanwhile.
func (l *line) withdraw(c *claim) {
	l.out.mu.Lock()
	if at := slices.Index(l.claims, c); at >= 0 {
		l.claims = slices.Delete(l.claims, at, at+1)
		l.out.serveLocked()
	}
	l.out.mu.Unlock()
	select {
	case p := <-c.granted:
		p.release()
	default:
	}
}

// fitsLocked tells whether there is room for n bytes of l. There always is for the only
// message of all, however large.
func (l *line) fitsLocked(n int) (here, there bool) {
	o := l.out
	node, line := o.most, o.most/lineShare
	if n > smallBytes {
		node -= o.most / reserveShare
	} else {
		line += o.most / lineShare / reserveShare
	}
	return l.used == 0 || l.used+n <= line, o.used == 0 || o.used+n <= node
}

// grantLocked returns nil if there is not the least that is wanted.
func (l *line) grantLocked(want size) *parcel {
	for _, n := range []int{want.most, want.least} {
		if here, there := l.fitsLocked(n); here && there {
			p := &parcel{line: l, bytes: n, gone: make(chan struct{})}
			l.parcels[p] = struct{}{}
			l.out.lines[l] = struct{}{}
			l.used += n
			l.out.used += n
			return p
		}
	}
	return nil
}

// serveLocked grants what there is room for: a claim of each line that waits, then
// another. A claim that only its own line has no room for holds up that line, and one
// that there is no room for at all holds up everybody, lest it waits for ever.
func (o *outgoing) serveLocked() {
	for blocked := 0; blocked < len(o.waiting); {
		l := o.waiting[0]
		if len(l.claims) == 0 {
			o.waiting = o.waiting[1:]
			continue
		}
		c := l.claims[0]
		here, there := l.fitsLocked(c.size.least)
		if here && !there {
			return
		}
		o.waiting = append(o.waiting[1:], l)
		if !here {
			blocked++
			continue
		}
		blocked = 0
		l.claims = l.claims[1:]
		c.granted <- l.grantLocked(c.size)
	}
}

// relieve closes the connections that have kept the most for the longest, as many as it
// takes; also each that has kept its share and has others of its own wait.
func (o *outgoing) relieve(now time.Time) {
	var close []*line
	o.mu.Lock()
	full, free := false, 0
	for _, l := range o.waiting {
		if len(l.claims) == 0 {
			continue
		}
		here, there := l.fitsLocked(l.claims[0].size.least)
		if full = full || !there; !here && l.keepsLocked(now) > 0 {
			close = append(close, l)
			free += l.used
		}
	}
	if full {
		for _, l := range o.worstLocked(now) {
			if free >= o.most/reliefShare {
				break
			}
			if !slices.Contains(close, l) {
				close = append(close, l)
				free += l.used
			}
		}
	}
	for _, l := range close {
		for p := range l.parcels {
			p.dropped = true
		}
	}
	o.mu.Unlock()
	for _, l := range close {
		o.logger.Warn("a connection is closed because what its watches were sent is not read, and others wait for the room", "client", l.RemoteAddr())
		o.closed()
		_ = l.Close()
	}
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
