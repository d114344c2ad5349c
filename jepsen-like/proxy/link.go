package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

const (
	// chunkBytes is how much is read at once, chunksHeld how many such wait in one
	// direction of one connection: what comes after that stays in the kernel's buffers,
	// and then with the sender.
	chunkBytes = 16 << 10
	chunksHeld = 32
)

// link is one connection through a proxy.
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	done   chan struct{} // closed when the link is to end
	ended  sync.Once
	// gone is closed when the client has said all it will.
	gone chan struct{}
	// silent has the link swallow everything, until it is reset.
	silent atomic.Bool

	mu     sync.Mutex
	target *net.TCPConn // nil until connected
}

// chunk is what was read at once; without bytes it is the end of what there is.
type chunk struct {
	bytes []byte
	due   time.Time
}

func newLink(p *Proxy, client *net.TCPConn) *link {
	return &link{proxy: p, client: client, done: make(chan struct{}), gone: make(chan struct{})}
}

// reset ends the link, and has both ends hear of it by a reset.
func (l *link) reset() {
	l.ended.Do(func() {
		close(l.done)
		abort(l.client)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.target != nil {
			abort(l.target)
		}
	})
}

func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0)
	_ = conn.Close()
}

// run carries bytes until both directions have ended, or the link is reset. A client
// is read before it is connected, so that one that goes away meanwhile is forgotten.
func (l *link) run() {
	var joined sync.WaitGroup
	defer joined.Wait()
	forth := make(chan chunk, chunksHeld)
	joined.Go(func() {
		defer close(l.gone)
		l.readLoop(l.client, l.proxy.cfg.Forth, forth)
	})
	if !l.connect() {
		l.reset()
		return
	}
	back := make(chan chunk, chunksHeld)
	joined.Go(func() { l.readLoop(l.target, l.proxy.cfg.Back, back) })
	var written sync.WaitGroup
	written.Add(2)
	joined.Go(func() {
		written.Wait()
		// Both have said all there was: closing is in order. Else this is a reset.
		l.ended.Do(func() {
			close(l.done)
			_ = l.client.Close()
			_ = l.target.Close()
		})
	})
	joined.Go(func() {
		defer written.Done()
		l.writeLoop(forth, l.target, pair{l.proxy.cfg.Forth, l.proxy.cfg.Back})
	})
	joined.Go(func() {
		defer written.Done()
		l.writeLoop(back, l.client, pair{l.proxy.cfg.Back, l.proxy.cfg.Forth})
	})
	<-l.done
}

// connect waits until connections get through, and connects to the target. It gives up
// when the target refuses, and when the client is gone before it could be connected.
func (l *link) connect() bool {
	for {
		if !l.awaitPassage() {
			return false
		}
		target, err := l.proxy.dialTarget()
		var timeout net.Error
		switch {
		case err == nil:
			return l.take(target)
		case !errors.As(err, &timeout) || !timeout.Timeout(): // as one that stands still does not
			return false
		}
	}
}

func (l *link) awaitPassage() bool {
	for {
		forth, forthChanged := l.proxy.cfg.Forth.look()
		back, backChanged := l.proxy.cfg.Back.look()
		if !forth.Cut && !back.Cut && !l.silent.Load() {
			return true
		}
		select {
		case <-l.done:
			return false
		case <-l.gone:
			return false
		case <-forthChanged:
		case <-backChanged:
		}
	}
}

func (l *link) take(target *net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		abort(target)
		return false
	default:
		l.target = target
		return true
	}
}

// readLoop reads from conn until that ends, and gives each piece its time to arrive: one
// that is due sooner than the one before comes right after that, since they queue.
func (l *link) readLoop(conn *net.TCPConn, line *Line, out chan<- chunk) {
	for {
		buffer := make([]byte, chunkBytes)
		n, err := conn.Read(buffer)
		state, _ := line.look()
		due := time.Now().Add(delay(state))
		if n > 0 && !l.put(out, chunk{buffer[:n], due}) {
			return
		}
		switch {
		case err == nil:
			continue
		case err == io.EOF:
			l.put(out, chunk{due: due})
		default:
			l.fail(line)
		}
		return
	}
}

func (l *link) put(out chan<- chunk, c chunk) bool {
	select {
	case out <- c:
		return true
	case <-l.done:
		return false
	}
}

// pair are the line that something is sent over, and the one in the other direction.
type pair struct{ line, opposite *Line }

// writeLoop writes what has arrived to conn, as the line lets it through.
func (l *link) writeLoop(in <-chan chunk, conn *net.TCPConn, lines pair) {
	for {
		var c chunk
		select {
		case c = <-in:
		case <-l.done:
			return
		}
		if !l.await(lines.line, c) {
			return
		}
		if l.silent.Load() {
			continue
		}
		if len(c.bytes) == 0 {
			_ = conn.CloseWrite()
			return
		}
		if !l.write(c.bytes, conn, lines.line) {
			l.fail(lines.opposite)
			return
		}
	}
}

// write writes in pieces that take about a twentieth of a second of the bandwidth each.
func (l *link) write(bytes []byte, conn *net.TCPConn, line *Line) bool {
	for len(bytes) > 0 {
		state, _ := line.look()
		n := len(bytes)
		if state.BytesPerSecond > 0 {
			n = min(n, max(64, state.BytesPerSecond/20))
		}
		if due := line.reserve(n); !due.IsZero() && !l.await(line, chunk{due: due}) {
			return false
		}
		if l.silent.Load() {
			return true
		}
		if _, err := conn.Write(bytes[:n]); err != nil {
			return false
		}
		bytes = bytes[n:]
	}
	return true
}

// await waits until c has arrived and the line is not cut. A line that is not slow any
// more lets through at once what it held.
func (l *link) await(line *Line, c chunk) bool {
	for {
		state, changed := line.look()
		wait := time.Until(c.due)
		if !slow(state) {
			wait = 0
		}
		if wait <= 0 && !state.Cut {
			return true
		}
		var due <-chan time.Time
		if !state.Cut {
			due = time.After(wait)
		}
		select {
		case <-l.done:
			return false
		case <-changed:
		case <-due:
		}
	}
}

func slow(state nemesis.LinkState) bool {
	return state.Delay > 0 || state.Jitter > 0 || state.BytesPerSecond > 0
}

// fail resets the link because one end is gone, as soon as the other can hear of it
// over line.
func (l *link) fail(line *Line) {
	for {
		state, changed := line.look()
		if !state.Cut && !l.silent.Load() {
			l.reset()
			return
		}
		select {
		case <-l.done:
			return
		case <-changed:
		}
	}
}
