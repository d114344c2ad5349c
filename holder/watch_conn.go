package holder

import (
	"slices"

	"google.golang.org/grpc"
)

// maxWatchesPerConn is how many watches share a connection. A server takes a thousand
// calls at a time of one, and whatever comes beyond that waits: so watches never share
// with the calls that renew leases, and leave room among themselves.
const maxWatchesPerConn = 500

// watchConn is a connection that has nothing but watches.
type watchConn struct {
	conn    *grpc.ClientConn
	watches int
}

// watchConn returns a connection to addr for one watch, which has to be released.
func (c *conns) watchConn(addr string) (conn *grpc.ClientConn, release func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, errClientClosed
	}
	at := slices.IndexFunc(c.watching[addr], func(w *watchConn) bool { return w.watches < maxWatchesPerConn })
	if at < 0 {
		conn, err := c.connect(addr)
		if err != nil {
			return nil, nil, err
		}
		at = len(c.watching[addr])
		c.watching[addr] = append(c.watching[addr], &watchConn{conn: conn})
	}
	w := c.watching[addr][at]
	w.watches++
	return w.conn, func() { c.releaseWatch(addr, w) }, nil
}

// releaseWatch ends the use of w by one watch; the last closes it.
func (c *conns) releaseWatch(addr string, w *watchConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.watches--; w.watches > 0 {
		return
	}
	if at := slices.Index(c.watching[addr], w); at >= 0 {
		c.watching[addr] = slices.Delete(c.watching[addr], at, at+1)
		_ = w.conn.Close() // it has nothing left to lose
	}
}
