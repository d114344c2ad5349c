package holder

import (
	"slices"

	"google.golang.org/grpc"
)

// lane is a connection for long calls, which are polls in line and watches. A server
// takes a limited number of calls of one connection, and what comes beyond that waits:
// long calls never share one with those that renew leases.
type lane struct {
	conn  *grpc.ClientConn
	calls int // on their way
}

// lane returns a connection to addr for one long call, which has to be released.
func (c *conns) lane(addr string) (conn *grpc.ClientConn, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.laneLocked(addr)
}

func (c *conns) laneLocked(addr string) (conn *grpc.ClientConn, release func(), err error) {
	if c.closed {
		return nil, nil, errClientClosed
	}
	i := slices.IndexFunc(c.lanes[addr], func(l *lane) bool { return l.calls < maxLaneCalls })
	if i < 0 {
		conn, err := c.connect(addr, grpc.WithUnaryInterceptor(c.hear(addr)))
		if err != nil {
			return nil, nil, err
		}
		i = len(c.lanes[addr])
		c.lanes[addr] = append(c.lanes[addr], &lane{conn: conn})
	}
	l := c.lanes[addr][i]
	l.calls++
	return l.conn, func() { c.releaseLane(addr, l) }, nil
}

// releaseLane ends one call of l. What was opened beyond the first lane of an address is
// closed when it has none left.
func (c *conns) releaseLane(addr string, l *lane) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.calls--
	if i := slices.Index(c.lanes[addr], l); i > 0 && l.calls == 0 {
		c.lanes[addr] = slices.Delete(c.lanes[addr], i, i+1)
		_ = l.conn.Close() // it has nothing left to lose
	}
}

// pickWaiting is pick for a poll; done has to be called after it.
func (c *conns) pickWaiting() (to target, done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr := c.pickLocked()
	conn, done, err := c.laneLocked(addr)
	return target{addr: addr, conn: conn}, done, err
}
