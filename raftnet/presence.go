package raftnet

import (
	"errors"
	"net"
	"sync"
)

// presence knows which peers have raft connections to this node. A peer that dies
// closes them all at once, long before a timeout says anything. Safe for concurrent
// use.
type presence struct {
	// lost gets a signal, never more than one pending, when a peer's last one has closed.
	lost chan struct{}

	mu   sync.Mutex
	open map[string]map[*presentConn]struct{} // of each peer's latest start only
}

func newPresence() *presence {
	return &presence{lost: make(chan struct{}, 1), open: map[string]map[*presentConn]struct{}{}}
}

// enter counts a connection that a peer made, until it is closed or breaks, or until a
// later start of the peer is met.
func (p *presence) enter(h Hello, conn net.Conn) net.Conn {
	c := &presentConn{Conn: conn, peer: h.ID, start: Sighting{Starts: h.Starts, Boot: h.Boot}, presence: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[h.ID] == nil {
		p.open[h.ID] = map[*presentConn]struct{}{}
	}
	p.open[h.ID][c] = struct{}{}
	return c
}

// met notes a peer's latest start. Connections of an earlier one no longer count: the
// process that made them is gone, whether this side has been told or not.
func (p *presence) met(id string, start Sighting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.open[id] {
		if c.start != start {
			p.leaveLocked(c)
		}
	}
}

func (p *presence) leave(c *presentConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaveLocked(c)
}

func (p *presence) leaveLocked(c *presentConn) {
	if _, counted := p.open[c.peer][c]; !counted {
		return
	}
	delete(p.open[c.peer], c)
	if len(p.open[c.peer]) == 0 {
		signal(p.lost)
	}
}

func (p *presence) connected(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open[id]) > 0
}

// presentConn tells when it ends.
type presentConn struct {
	net.Conn
	peer     string
	start    Sighting
	presence *presence
}

func (c *presentConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if timeout, ok := errors.AsType[net.Error](err); err != nil && (!ok || !timeout.Timeout()) {
		c.presence.leave(c)
	}
	return n, err
}

func (c *presentConn) Close() error {
	c.presence.leave(c)
	return c.Conn.Close()
}
