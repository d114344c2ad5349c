package raftnet

import (
	"errors"
	"io"
	"net"
	"sync"
)

// lane is the listener of one purpose. It closes the connections that it handed out
// when it is closed, since not all who take one do.
type lane struct {
	addr   net.Addr
	conns  chan net.Conn
	closed chan struct{}

	mu   sync.Mutex
	open map[*laneConn]struct{} // nil once closed
}

func newLane(addr net.Addr) *lane {
	return &lane{addr: addr, conns: make(chan net.Conn), closed: make(chan struct{}), open: map[*laneConn]struct{}{}}
}

// hand gives conn to whoever accepts, and reports false if nobody will any more.
func (l *lane) hand(conn net.Conn) bool {
	tracked := &laneConn{Conn: conn, lane: l}
	l.mu.Lock()
	if l.open != nil {
		l.open[tracked] = struct{}{}
	}
	l.mu.Unlock()
	select {
	case l.conns <- tracked:
		return true
	case <-l.closed:
		return false
	}
}

func (l *lane) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *lane) Close() error {
	l.mu.Lock()
	open := l.open
	if open != nil {
		close(l.closed)
	}
	l.open = nil
	l.mu.Unlock()
	for conn := range open {
		_ = conn.Conn.Close()
	}
	return nil
}

func (l *lane) Addr() net.Addr { return l.addr }

type laneConn struct {
	net.Conn
	lane *lane
}

// Read reports the end of the stream when this side has closed it: who reads it takes
// that for a peer that has left, and not for a fault.
func (c *laneConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if errors.Is(err, net.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

func (c *laneConn) Close() error {
	c.lane.mu.Lock()
	delete(c.lane.open, c)
	c.lane.mu.Unlock()
	return c.Conn.Close()
}
