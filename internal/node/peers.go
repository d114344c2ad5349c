package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"

	"github.com/leasenode/leasenode/api/bundle"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/raftnet"
)

// peerConns are connections to the other nodes, over the peer port.
type peerConns struct {
	dial func(ctx context.Context, id string, purpose raftnet.Purpose) (net.Conn, error)

	mu     sync.Mutex
	conns  map[string]*bundle.Conn
	closed bool
}

func newPeerConns() *peerConns {
	return &peerConns{conns: map[string]*bundle.Conn{}}
}

// Conn returns the connection to node id, made when it is first used.
func (p *peerConns) Conn(id string) (grpc.ClientConnInterface, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("this node is stopping")
	}
	if conn, ok := p.conns[id]; ok {
		return conn, nil
	}
	under, err := grpc.NewClient("passthrough:///"+id, append(wire.DialOptions(),
		// TLS belongs to the port, which then has every connection between nodes.
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, id string) (net.Conn, error) {
			return p.dial(ctx, id, raftnet.PurposeCall)
		}),
		// A connection that has gone silent is given up within 13 s: the system alone would
		// keep it for many minutes, and all that is passed on would wait in it.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second, PermitWithoutStream: true}),
		// A node that comes back is found again fast. (ClientConn.ResetConnectBackoff would
		// be faster still, but reads a map of gRPC's without its lock.)
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 300 * time.Millisecond},
			MinConnectTimeout: 2 * time.Second,
		}),
	)...)
	if err != nil {
		return nil, fmt.Errorf("connect to node %q: %w", id, err)
	}
	conn := bundle.Over(under)
	p.conns[id] = conn
	return conn, nil
}

func (p *peerConns) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var err error
	for _, conn := range p.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}
