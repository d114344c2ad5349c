package sim

import (
	"net"
	"syscall"
)

// address is a place on the network.
type address string

func (a address) Network() string { return "sim" }
func (a address) String() string  { return string(a) }

// listener is a place where hosts connect to.
type listener struct {
	network *network
	host    host
	addr    string
	come    chan struct{} // a signal that queue is not empty

	// Guarded by the network's mutex.
	queue []net.Conn
	over  bool
	ended chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		l.network.mu.Lock()
		if len(l.queue) > 0 && !l.over {
			conn := l.queue[0]
			l.queue = l.queue[1:]
			l.network.mu.Unlock()
			return conn, nil
		}
		l.network.mu.Unlock()
		select {
		case <-l.come:
		case <-l.ended:
			return nil, &net.OpError{Op: "accept", Net: "sim", Addr: l.Addr(), Err: net.ErrClosed}
		}
	}
}

func (l *listener) queueLocked(conn net.Conn) {
	l.queue = append(l.queue, conn)
	select {
	case l.come <- struct{}{}:
	default:
	}
}

func (l *listener) endLocked() {
	if !l.over {
		l.over = true
		close(l.ended)
	}
}

// Close refuses later connections, and resets those that nobody has accepted.
func (l *listener) Close() error {
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	if l.over {
		return &net.OpError{Op: "close", Net: "sim", Addr: l.Addr(), Err: net.ErrClosed}
	}
	if l.network.listeners[l.addr] == l {
		delete(l.network.listeners, l.addr)
	}
	l.endLocked()
	for _, conn := range l.queue {
		conn.(*end).wire.resetLocked(syscall.ECONNRESET)
	}
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.addr) }
