package sim

import (
	"io"
	"net"
	"syscall"
	"time"
)

// wire is one connection: a pipe for each direction.
type wire struct {
	network *network
	ends    route  // from who dialed to who was dialed
	addr    string // that was dialed
	pipes   [2]*pipe
	closed  int // ends that were closed
}

func newWire(n *network, r route, addr string) *wire {
	return &wire{network: n, ends: r, addr: addr, pipes: [2]*pipe{newPipe(n, r), newPipe(n, r.back())}}
}

func (w *wire) dialer() *end {
	return &end{wire: w, out: w.pipes[0], in: w.pipes[1], local: address("dialer:1"), remote: address(w.addr)}
}

func (w *wire) accepted() *end {
	return &end{wire: w, out: w.pipes[1], in: w.pipes[0], local: address(w.addr), remote: address("dialer:1")}
}

// along reports whether the connection uses the way, in either direction.
func (w *wire) along(r route) bool { return w.ends == r || w.ends == r.back() }

// The methods that follow are called with the network's mutex held.

// resetLocked ends the connection for both, at once.
func (w *wire) resetLocked(err error) {
	delete(w.network.conns, w)
	for _, p := range w.pipes {
		p.breakOff(err)
	}
}

// closedLocked takes in that one of the ends was closed.
func (w *wire) closedLocked() {
	if w.closed++; w.closed == 2 {
		delete(w.network.conns, w)
	}
}

// dieLocked ends the connection because host h has died. The other side learns of it
// over the network, if that lets it through.
func (w *wire) dieLocked(h host) {
	for _, p := range w.pipes {
		if p.route.from == h {
			p.finish(syscall.ECONNRESET)
			p.forbid(net.ErrClosed)
		}
		if p.route.to == h {
			p.abandon()
		}
	}
}

// silenceLocked loses what is and will be sent along r, for good.
func (w *wire) silenceLocked(r route) {
	for _, p := range w.pipes {
		if p.route == r {
			p.silence()
		}
	}
}

// end is one side's view of a connection.
type end struct {
	wire    *wire
	out, in *pipe
	local   net.Addr
	remote  net.Addr
}

var _ net.Conn = (*end)(nil)

func (e *end) Read(b []byte) (int, error) {
	n, err := e.in.get(b)
	return n, e.explain("read", err)
}

func (e *end) Write(b []byte) (int, error) {
	n, err := e.out.put(b)
	return n, e.explain("write", err)
}

// explain wraps all errors but the end of the stream, as the net package does.
func (e *end) explain(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "sim", Source: e.local, Addr: e.remote, Err: err}
}

// Close lets what was written arrive.
func (e *end) Close() error {
	e.out.finish(io.EOF)
	e.out.forbid(net.ErrClosed)
	e.in.abandon()
	n := e.wire.network
	n.mu.Lock()
	defer n.mu.Unlock()
	e.wire.closedLocked()
	return nil
}

func (e *end) LocalAddr() net.Addr  { return e.local }
func (e *end) RemoteAddr() net.Addr { return e.remote }

func (e *end) SetDeadline(t time.Time) error {
	_ = e.SetReadDeadline(t)
	return e.SetWriteDeadline(t)
}

func (e *end) SetReadDeadline(t time.Time) error {
	e.in.mu.Lock()
	defer e.in.mu.Unlock()
	e.in.read.set(t, e.in.wake)
	e.in.cond.Broadcast()
	return nil
}

func (e *end) SetWriteDeadline(t time.Time) error {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	e.out.write.set(t, e.out.wake)
	e.out.cond.Broadcast()
	return nil
}
