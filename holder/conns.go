package holder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/leasenode/leasenode/api/bundle"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// conns are connections to nodes, by address, and what is known of the leader.
type conns struct {
	endpoints []string
	stay      bool                                                     // use no address but the endpoints
	dial      func(ctx context.Context, addr string) (net.Conn, error) // nil for the system's
	contact   contact                                                  // of calls that no holder has made

	mu     sync.Mutex
	open   map[string]heardConn
	lanes  map[string][]*lane // by address
	leader string             // the leader's address as last heard, or ""
	turn   int                // which endpoint is next while no leader is known
	silent map[string]silence
	closed bool
}

// silence is of an address that gave no answer, since it last gave one.
type silence struct {
	failures int
	until    time.Time // when it may be tried again before others
}

const (
	// firstAvoid and maxAvoid bound how long an address that gave no answer is avoided.
	firstAvoid = time.Second
	maxAvoid   = time.Minute
	// maxLearned is how many addresses beside the endpoints are taken from answers: a
	// cluster has fewer nodes.
	maxLearned = 16
	// maxLaneCalls is how many long calls one connection carries: a node takes 1,000.
	maxLaneCalls = 400
)

// errClientClosed answers what is asked of a client that was closed.
var errClientClosed = fmt.Errorf("the client is closed: %w", lease.ErrUnavailable)

// target is a node to try.
type target struct {
	addr string
	conn grpc.ClientConnInterface
}

func newConns(endpoints []string, options []Option) (*conns, error) {
	c := &conns{endpoints: endpoints, open: map[string]heardConn{}, lanes: map[string][]*lane{}, silent: map[string]silence{}}
	c.contact.log = hclog.NewNullLogger()
	for _, option := range options {
		option(c)
	}
	if err := c.validEndpoints(); err != nil {
		return nil, err
	}
	for _, addr := range endpoints {
		if _, err := c.conn(addr); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// validEndpoints returns what is wrong with the first endpoint that cannot be one. What
// would be taken for an endpoint with gRPC's default port, which no node has, is none.
func (c *conns) validEndpoints() error {
	if len(c.endpoints) == 0 {
		return &lease.InvalidError{Field: "endpoints", Problem: "is empty", Limit: "the addresses of one or more nodes, host:port each"}
	}
	for _, addr := range c.endpoints {
		_, port, err := net.SplitHostPort(addr)
		numeric := strings.Trim(port, "0123456789") == ""
		number, outside := strconv.ParseUint(port, 10, 16)
		switch {
		case c.dial != nil && addr != "":
		case err != nil, strings.ContainsAny(addr, "/ "), numeric && (outside != nil || number == 0):
			return &lease.InvalidError{Field: "endpoints", Problem: fmt.Sprintf("has %.80q", addr), Limit: "host:port each, with a port from 1 to 65535, as in 10.0.0.1:7201"}
		}
	}
	return nil
}

// conn returns the connection to addr, made if need be.
func (c *conns) conn(addr string) (grpc.ClientConnInterface, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.connLocked(addr)
}

func (c *conns) connLocked(addr string) (grpc.ClientConnInterface, error) {
	if c.closed {
		return nil, errClientClosed
	}
	if conn, ok := c.open[addr]; ok {
		return conn, nil
	}
	under, err := c.connect(addr)
	if err != nil {
		return nil, err
	}
	conn := heardConn{Conn: bundle.Over(under), addr: addr, conns: c}
	c.open[addr] = conn
	return conn, nil
}

// connect makes a connection to addr.
func (c *conns) connect(addr string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	resolver, options := "dns:///", append(options, wire.DialOptions()...)
	if c.dial != nil { // it is given the address as it is
		resolver, options = "passthrough:///", append(options, grpc.WithContextDialer(c.dial))
	}
	conn, err := grpc.NewClient(resolver+addr, append(options,
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
	return conn, nil
}

// pick returns the node for the next try: the leader if one is known. It fails only
// when the client is closed.
func (c *conns) pick() (target, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	addr := c.pickLocked()
	conn, err := c.connLocked(addr)
	return target{addr: addr, conn: conn}, err
}

func (c *conns) pickLocked() string {
	if c.leader != "" {
		return c.leader
	}
	return c.endpointLocked()
}

// endpointLocked returns the endpoint whose turn it is, or the next after it that has
// not just failed.
func (c *conns) endpointLocked() string {
	for i := range c.endpoints {
		if addr := c.endpoints[(c.turn+i)%len(c.endpoints)]; !c.avoidedLocked(addr) {
			return addr
		}
	}
	return c.endpoints[c.turn%len(c.endpoints)]
}

// learn notes that from has answered, and the leader that its answer names.
func (c *conns) learn(from target, leader wire.Leader) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.silent, from.addr)
	if c.stay || !c.followLocked(leader.APIAddr) {
		c.leader = from.addr // it answers: no reason to leave it
	}
}

// unlearn notes that a node could not do what it was asked. If it answered so, it may
// have named the leader that can; if not, it is avoided for a while, even as a leader
// that others name: it may be cut off from here alone.
func (c *conns) unlearn(from target, failed error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if wire.Answered(failed) {
		delete(c.silent, from.addr)
	} else if s := c.silent[from.addr]; !c.avoidedLocked(from.addr) { // else one of many calls that failed together
		c.silent[from.addr] = silence{failures: s.failures + 1, until: time.Now().Add(min(firstAvoid<<min(s.failures, 10), maxAvoid))}
	}
	if i := slices.Index(c.endpoints, from.addr); i >= 0 {
		c.turn = (i + 1) % len(c.endpoints)
	}
	if c.leader == from.addr {
		c.leader = ""
	}
	if named := wire.LeaderOf(failed).APIAddr; !c.stay && named != from.addr {
		c.followLocked(named)
	}
}

// followLocked takes addr for the leader's, if it can be used, and reports whether.
func (c *conns) followLocked(addr string) bool {
	if addr == "" || c.avoidedLocked(addr) {
		return false
	}
	if _, open := c.open[addr]; !open && len(c.open) >= len(c.endpoints)+maxLearned {
		return false
	}
	if _, err := c.connLocked(addr); err != nil {
		return false
	}
	c.leader = addr
	return true
}

func (c *conns) avoidedLocked(addr string) bool { return time.Now().Before(c.silent[addr].until) }

func (c *conns) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var err error
	for addr, conn := range c.open {
		err = errors.Join(err, conn.Close())
		delete(c.open, addr)
	}
	for addr, lanes := range c.lanes {
		for _, l := range lanes {
			err = errors.Join(err, l.conn.Close())
		}
		delete(c.lanes, addr)
	}
	return err
}
