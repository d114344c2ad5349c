package sim

import (
	"net"
	"os"
	"sync"
	"time"
)

// pipeBytes is how much may be on its way before a writer has to wait.
const pipeBytes = 256 << 10

// pipe is one direction of a connection: a queue of messages, each of which may be
// read from a moment on, and never while the way is cut.
type pipe struct {
	network *network
	route   route
	way     *way

	mu    sync.Mutex
	cond  *sync.Cond // of mu: something has changed
	queue []parcel
	bytes int
	// last is when the latest message arrives; none overtakes it.
	last time.Time
	// ended is what a reader gets after the queue; its moment is in the queue's order.
	ended   error
	endedAt time.Time
	broken  error // what a reader gets at once
	refused error // what a writer gets
	silent  bool  // what is written gets lost

	read, write deadline
	alarm       *time.Timer // for the next message to arrive
}

type parcel struct {
	data []byte
	at   time.Time
}

func newPipe(n *network, r route) *pipe {
	p := &pipe{network: n, route: r, way: n.wayLocked(r)}
	p.cond = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cond.Broadcast()
}

func (p *pipe) breakOff(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken == nil {
		p.broken = err
	}
	if p.refused == nil {
		p.refused = err
	}
	p.queue, p.bytes = nil, 0
	p.cond.Broadcast()
}

// abandon is for a pipe that is not read any more. What is still written gets lost: its
// writer learns from the other pipe that nobody is there, when that comes through, and
// not before, as with TCP.
func (p *pipe) abandon() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken, p.silent = net.ErrClosed, true
	p.queue, p.bytes = nil, 0
	if p.alarm != nil {
		p.alarm.Stop()
	}
	p.read.set(time.Time{}, nil)
	p.cond.Broadcast()
}

// finish has the reader get err after all that was sent, a trip later.
func (p *pipe) finish(err error) {
	trip := mostLatency
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil && !p.silent {
		p.ended, p.endedAt = err, later(time.Now().Add(trip), p.last)
	}
	p.cond.Broadcast()
}

func (p *pipe) forbid(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused == nil {
		p.refused = err
	}
	p.write.set(time.Time{}, nil)
	p.cond.Broadcast()
}

func (p *pipe) silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
	p.queue, p.bytes = nil, 0
	p.cond.Broadcast()
}

func (p *pipe) put(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		part := b[:min(len(b), pipeBytes/4)]
		if err := p.putPart(part); err != nil {
			return written, err
		}
		written += len(part)
		b = b[len(part):]
	}
	return written, nil
}

func (p *pipe) putPart(b []byte) error {
	trip, bytesPerSecond := p.network.trip(p.way)
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.refused == nil && !p.write.passed() && p.bytes+len(b) > pipeBytes {
		p.cond.Wait()
	}
	switch {
	case p.refused != nil:
		return p.refused
	case p.write.passed():
		return os.ErrDeadlineExceeded
	case p.silent:
		return nil
	}
	at := later(time.Now().Add(trip), p.last)
	if bytesPerSecond > 0 {
		at = at.Add(time.Duration(len(b)) * time.Second / time.Duration(bytesPerSecond))
	}
	p.last = at
	p.queue = append(p.queue, parcel{append([]byte(nil), b...), at})
	p.bytes += len(b)
	p.cond.Broadcast()
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// get reads what has arrived, or waits for something.
func (p *pipe) get(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		now, cut := time.Now(), p.way.cut.Load()
		switch {
		case p.broken != nil:
			return 0, p.broken
		case p.read.passed():
			return 0, os.ErrDeadlineExceeded
		case cut: // whoever mends the way wakes this up
		case len(p.queue) > 0 && !p.queue[0].at.After(now):
			return p.drainLocked(b, now), nil
		case len(p.queue) > 0:
			p.alarmLocked(p.queue[0].at.Sub(now))
		case p.ended != nil && !p.endedAt.After(now):
			return 0, p.ended
		case p.ended != nil:
			p.alarmLocked(p.endedAt.Sub(now))
		}
		p.cond.Wait()
	}
}

// drainLocked fills b from the messages that have arrived.
func (p *pipe) drainLocked(b []byte, now time.Time) int {
	n := 0
	for n < len(b) && len(p.queue) > 0 && !p.queue[0].at.After(now) {
		taken := copy(b[n:], p.queue[0].data)
		n += taken
		if p.queue[0].data = p.queue[0].data[taken:]; len(p.queue[0].data) == 0 {
			p.queue = p.queue[1:]
		}
	}
	p.bytes -= n
	p.cond.Broadcast() // a writer may have waited for room
	return n
}

// alarmLocked wakes the reader up after d.
func (p *pipe) alarmLocked(d time.Duration) {
	if p.alarm == nil {
		p.alarm = time.AfterFunc(d, p.wake)
	} else {
		p.alarm.Reset(d)
	}
}

// deadline is when reads or writes fail. It is guarded by its pipe's mutex.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) set(at time.Time, wake func()) {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	if d.at = at; !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), wake)
	}
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }
