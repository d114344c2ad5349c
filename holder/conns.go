package holder

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// conns are connections to nodes, by address, and what is known of the leader.
type conns struct {
	endpoints []string
	stay      bool // use no address but the endpoints

	mu     sync.Mutex
	open   map[string]*grpc.ClientConn
	leader string // the leader's address as last heard, or ""
	turn   int    // which endpoint is next while no leader is known
	closed bool
}

// target is a node to try.
type target struct {
	addr string
	conn grpc.ClientConnInterface
}

func newConns(endpoints []string) (*conns, error) {
	c := &conns{endpoints: endpoints, open: map[string]*grpc.ClientConn{}}
	for _, addr := range endpoints {
		if _, err := c.conn(addr); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// conn returns the connection to addr, made if need be.
func (c *conns) conn(addr string) (grpc.ClientConnInterface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connLocked(addr)
}

func (c *conns) connLocked(addr string) (grpc.ClientConnInterface, error) {
	if c.closed {
		return nil, fmt.Errorf("the client is closed: %w", lease.ErrUnavailable)
	}
	if conn, ok := c.open[addr]; ok {
		return conn, nil
	}
	conn, err := grpc.NewClient("dns:///"+addr, append(wire.DialOptions(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		// A peer that vanished without a word is noticed within 13 s even when idle.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
	)...)
	if err != nil {
		return nil, fmt.Errorf("dial %q: %w", addr, err)
	}
	c.open[addr] = conn
	return conn, nil
}

// pick returns the node for try n of a call: the leader if one is known.
func (c *conns) pick(n int) (target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr := c.leader
	if addr == "" {
		addr = c.endpoints[c.turn%len(c.endpoints)]
	}
	conn, err := c.connLocked(addr)
	return target{addr: addr, conn: conn}, err
}

// learn notes the leader that an answer names.
func (c *conns) learn(from target, leader wire.Leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.stay:
		c.leader = from.addr // it answers: no reason to leave it
	case leader.APIAddr != "":
		c.leader = leader.APIAddr
	}
}

// unlearn notes that a node could not do what it was asked, and may have named the
// leader that can.
func (c *conns) unlearn(from target, leader wire.Leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stay && leader.APIAddr != "" && leader.APIAddr != from.addr {
		c.leader = leader.APIAddr
		return
	}
	if c.leader == from.addr {
		c.leader = ""
	}
	if c.leader == "" && c.endpoints[c.turn%len(c.endpoints)] == from.addr {
		c.turn++
	}
}

func (c *conns) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var err error
	for addr, conn := range c.open {
		err = errors.Join(err, conn.Close())
		delete(c.open, addr)
	}
	return err
}
