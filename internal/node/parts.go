package node

import (
	"context"
	"net"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// Parts are what a node stands on. A simulation or a chaos harness replaces some of
// them; all but Wrap and Feed have to be set.
type Parts struct {
	Clock  lease.Clock
	Logger hclog.Logger
	// Listen opens a listener on host:port.
	Listen func(addr string) (net.Listener, error)
	// Dial connects to a peer at host:port.
	Dial func(ctx context.Context, addr string) (net.Conn, error)
	// OpenStores opens the log, the vote and the snapshots.
	OpenStores func(disk.Config) (*disk.Stores, error)
	// Exit ends the process, at once and without touching a disk: a store has failed or
	// hangs, and nothing may be acknowledged any more. See [ExitCode].
	Exit func(error)
	// NewTransport returns what carries raft's messages over the peer port.
	NewTransport func(port *raftnet.Port, logger hclog.Logger) raftnet.Transport
	Tuning       raftnet.Tuning
	// Wrap, if set, returns what the servers, the health and the audit of this node get in
	// place of its part in the consensus and its state, to make them lie. What it returns
	// has to be safe for concurrent use, and is not closed.
	Wrap func(api.Consensus, api.State) (api.Consensus, api.State)
	// Feed bounds what a node keeps for watchers; zero for the defaults.
	Feed feed.Bounds
	// Registry takes the node's metrics, and is what its HTTP address serves.
	Registry *prometheus.Registry
}

// SystemParts returns the parts of a node in production: this machine's clock,
// network and disk.
func SystemParts(logger hclog.Logger) Parts {
	var dialer net.Dialer
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return Parts{
		Clock:        lease.NewSystemClock(),
		Logger:       logger,
		Listen:       func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) },
		Dial:         func(ctx context.Context, addr string) (net.Conn, error) { return dialer.DialContext(ctx, "tcp", addr) },
		OpenStores:   disk.Open,
		Exit:         exit,
		NewTransport: raftnet.NewTransport,
		Tuning:       raftnet.DefaultTuning(),
		Registry:     registry,
	}
}
