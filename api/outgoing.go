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
	// makers is how many messages are made at a time: what they are made of takes up some
	// ten times as much as they do.
	makers = 16
)

// outgoing is the room, in bytes, for messages that are on their way to watchers: from
// before a message is made until gRPC has written it to the connection, or has given it
// up. All methods, and those of its lines and parcels, are safe for concurrent use.
//
// Who waits for room is served in turn, connection by connection; those who have shown
// that they read before those who have not yet.
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
	// lines are those that have something on its way; waiting are those with claims, of
	// each standing in the order in which they are served.
	lines   map[*line]struct{}
	waiting [standings][]*line
	// duty has a token while one of those who wait sees to it that room is made.
	duty chan struct{}
	// making has a token for each message that is being made.
	making chan struct{}
}

func newOutgoing(most int, logger hclog.Logger, closed func()) *outgoing {
	return &outgoing{most: most, logger: logger, closed: closed, lines: map[*line]struct{}{}, duty: make(chan struct{}, 1), making: make(chan struct{}, makers)}
}

// Used returns how much of the room is taken.
func (o *outgoing) Used() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.used
}

// standing tells those who are served first.
type standing uint8

const (
	// reads has taken more than a client has room for that does not read.
	reads standing = iota
	// unknown may have taken what it did without reading it.
	unknown
	standings
)

// size is how much room somebody wants.
type size struct{ least, most int }

// request is a wish for room. Timeout is how long it may wait.
type request struct {
	size
	standing standing
	timeout  time.Duration
}

// claim is a request that waits.
type claim struct {
	request
	granted chan *parcel // has room for it
}

// take returns room for one message on l, as much of what is wanted as there is. It
// waits for that at most as long as it may: [lease.ErrUnavailable] after that, or the
// error of ctx. Then the caller makes the message, without waiting for anything; the
// parcel has to be sent or released.
func (l *line) take(ctx context.Context, want request) (*parcel, error) {
	p, err := l.claim(ctx, want)
	if err != nil {
		return nil, err
	}
	select {
	case l.out.making <- struct{}{}:
		p.making = true
		return p, nil
	case <-ctx.Done():
		p.release()
		return nil, ctx.Err()
	}
}

// claim is take without leave to make the message.
func (l *line) claim(ctx context.Context, want request) (*parcel, error) {
	o := l.out
	o.mu.Lock()
	if want.least <= smallBytes || len(o.waiting[reads]) == 0 && (want.standing == reads || len(o.waiting[unknown]) == 0) {
		if p := l.grantLocked(want.size); p != nil {
			o.mu.Unlock()
			return p, nil
		}
	}
	c := &claim{request: want, granted: make(chan *parcel, 1)}
	if l.claims[want.standing] = append(l.claims[want.standing], c); len(l.claims[want.standing]) == 1 {
		o.waiting[want.standing] = append(o.waiting[want.standing], l)
	}
	o.serveLocked() // those before it may have to wait for their own lines only
	o.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, want.timeout, fmt.Errorf("%d bytes are on their way to those who watch, and there is no room for more: %w", o.most, lease.ErrUnavailable))
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
	o := l.out
	o.mu.Lock()
	if at := slices.Index(l.claims[c.standing], c); at >= 0 {
		l.claims[c.standing] = slices.Delete(l.claims[c.standing], at, at+1)
		if len(l.claims[c.standing]) == 0 {
			o.waiting[c.standing] = slices.DeleteFunc(o.waiting[c.standing], func(other *line) bool { return other == l })
		}
		o.serveLocked()
	}
	o.mu.Unlock()
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
	for s := range o.waiting {
		for blocked := 0; blocked < len(o.waiting[s]); {
			l := o.waiting[s][0]
			c := l.claims[s][0]
			here, there := l.fitsLocked(c.least)
			if here && !there {
				return
			}
			o.waiting[s] = o.waiting[s][1:]
			if here {
				c.granted <- l.grantLocked(c.size)
				l.claims[s] = l.claims[s][1:]
				blocked = 0
			} else {
				blocked++
			}
			if len(l.claims[s]) > 0 {
				o.waiting[s] = append(o.waiting[s], l)
			}
		}
	}
}
