package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// Node is a running node. Its methods are safe for concurrent use.
type Node struct {
	cfg   Config
	parts Parts

	lock      *flock.Flock
	listeners listeners
	core      *core
	stores    *disk.Stores
	state     *fsm.FSM
	raft      *raftnet.Node
	peers     *peerConns
	health    *api.Health
	servers   []*grpc.Server
	http      *http.Server

	ctx    context.Context
	stop   context.CancelFunc
	joined sync.WaitGroup

	failure sync.Once
	done    chan struct{} // closed after err is set
	err     error
	closing sync.Once
	closed  error
}

type listeners struct{ peer, api, http net.Listener }

// Open starts a node and returns when it takes part in its cluster; for a new cluster,
// when all its nodes have met, which ctx bounds. On an error nothing is left running.
func Open(ctx context.Context, cfg Config, parts Parts) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	n := &Node{cfg: cfg, parts: parts, done: make(chan struct{})}
	n.ctx, n.stop = context.WithCancel(context.Background())
	for _, step := range []func(context.Context) error{n.openDirectory, n.listen, n.openPort, n.serve, n.join, n.openState, n.openConsensus} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// openDirectory takes the directory. On a full disk it waits for space, rather than to
// start and end again and again.
func (n *Node) openDirectory(ctx context.Context) (err error) {
	if n.lock, err = lockDirectory(n.cfg.DataDir); err != nil {
		return err
	}
	return disk.AwaitRoom(ctx, disk.Config{Dir: n.cfg.DataDir, Logger: n.parts.Logger.Named("disk")})
}

// listen opens all listeners before anything is written, so that a port in use costs
// nothing.
func (n *Node) listen(context.Context) error {
	open := func(flag, addr, fallback string, ln *net.Listener) (err error) {
		if addr == "" {
			addr = fallback
		}
		if addr == "" {
			return nil
		}
		if *ln, err = n.parts.Listen(addr); err != nil {
			return fmt.Errorf("%s: %w: stop what uses the port, or give another", flag, err)
		}
		return nil
	}
	return errors.Join(
		open("peer-addr", n.cfg.PeerListen, n.cfg.PeerAddr, &n.listeners.peer),
		open("api-addr", n.cfg.APIListen, n.cfg.APIAddr, &n.listeners.api),
		open("http-addr", n.cfg.HTTPAddr, "", &n.listeners.http),
	)
}

// openPort finds out who this node is and opens the peer port.
func (n *Node) openPort(context.Context) error {
	identity, err := raftnet.OpenIdentity(n.cfg.DataDir, n.cfg.ID)
	if err != nil {
		return err
	}
	n.core = &core{identity: identity, founders: n.cfg.Cluster}
	n.peers = newPeerConns()
	n.core.port = raftnet.OpenPort(raftnet.PortConfig{
		Identity: identity, APIAddr: n.cfg.APIAddr, Listener: n.listeners.peer,
		Dial: n.parts.Dial, AddrOf: addresses(n.cfg, identity.Table), Logger: n.parts.Logger.Named("port"),
	})
	n.peers.dial = n.core.port.Dial
	return nil
}

// addresses tells where to dial a node: what --dial says, else what the cluster was
// founded with, or is to be.
func addresses(cfg Config, table raftnet.Table) func(id string) (string, bool) {
	addrs := map[string]string{}
	for _, p := range cfg.Cluster {
		addrs[p.ID] = p.Addr
	}
	for _, m := range table {
		addrs[m.ID] = m.Addr
	}
	for _, p := range cfg.Dial {
		addrs[p.ID] = p.Addr
	}
	return func(id string) (string, bool) {
		addr, ok := addrs[id]
		return addr, ok
	}
}

// join has a new cluster's nodes meet, and lets the members of the cluster in.
func (n *Node) join(ctx context.Context) error {
	identity := n.core.identity
	if len(identity.Table) == 0 {
		if err := n.cfg.validFounders(); err != nil {
			return err
		}
		list := map[string]string{}
		for _, p := range n.cfg.Cluster {
			list[p.ID] = p.Addr
		}
		table, err := raftnet.Found(ctx, n.core.port, list)
		if err != nil {
			return err
		}
		n.parts.Logger.Info("the cluster is founded", "cluster", table.ClusterID(), "nodes", len(table))
	}
	n.warnOfOtherList(identity.Table)
	n.core.port.Serve(identity.Table)
	return nil
}

func (n *Node) warnOfOtherList(table raftnet.Table) {
	same := len(n.cfg.Cluster) == len(table)
	for _, p := range n.cfg.Cluster {
		m, ok := table.Member(p.ID)
		same = same && ok && m.Addr == p.Addr
	}
	if !same {
		n.parts.Logger.Warn("--cluster is not what the cluster was founded with, and has no effect: it is read at founding only")
	}
}

func (n *Node) openState(context.Context) (err error) {
	n.stores, err = n.parts.OpenStores(disk.Config{
		Dir: n.cfg.DataDir, Log: n.cfg.LogStore, Begun: n.core.identity.Joined, Logger: n.parts.Logger.Named("disk"), Registry: n.parts.Registry,
		OnFailure: n.parts.Exit, End: n.parts.Exit, Leads: n.core.elected,
	})
	if err != nil {
		return err
	}
	if err := raftnet.Begin(n.core.identity, n.raftStores()); err != nil {
		return err
	}
	n.state, err = fsm.Open(fsm.Config{Dir: filepath.Join(n.cfg.DataDir, "state"), Logger: n.parts.Logger.Named("state"), OnFailure: n.fail, Feed: n.parts.Feed})
	return err
}

func (n *Node) raftStores() raftnet.Stores {
	return raftnet.Stores{Logs: n.stores.Logs, Stable: n.stores.Stable, Snapshots: n.stores.Snapshots}
}

func (n *Node) openConsensus(context.Context) (err error) {
	n.raft, err = raftnet.Open(raftnet.Config{
		ID: n.cfg.ID, Settings: n.cfg.settings(), FSM: n.state,
		Transport:  n.parts.NewTransport(n.core.port, n.parts.Logger.Named("transport")),
		Neighbours: n.core.port,
		Stores:     n.raftStores(), Abstain: n.stores.Full, Clock: n.parts.Clock, Tuning: n.parts.Tuning,
		Logger: n.parts.Logger, Metrics: raftnet.NewMetrics(n.parts.Registry),
	})
	if err != nil {
		return err
	}
	n.core.running.Store(&running{state: n.state, raft: n.raft})
	return nil
}

// serve answers from the start on: a node that waits for its cluster says so.
func (n *Node) serve(context.Context) error {
	parts := api.Node{
		ID: n.cfg.ID, APIAddr: n.cfg.APIAddr, Consensus: consensus{n.core}, State: state{n.core},
		Peers: n.peers, Logger: n.parts.Logger.Named("api"),
	}
	if n.parts.Wrap != nil {
		parts.Consensus, parts.State = n.parts.Wrap(parts.Consensus, parts.State)
	}
	n.health = api.NewHealth(parts)
	public, err := api.NewPublicServer(parts, n.health, n.parts.Registry)
	if err != nil {
		return fmt.Errorf("set up the API: %w", err)
	}
	peer := api.NewPeerServer(parts)
	n.servers = []*grpc.Server{public, peer}
	n.joined.Go(func() { n.serveUntilStopped("API", func() error { return public.Serve(n.listeners.api) }) })
	n.joined.Go(func() {
		n.serveUntilStopped("peer", func() error { return peer.Serve(n.core.port.Listener(raftnet.PurposeCall)) })
	})
	n.health.Start()
	n.joined.Go(func() {
		if err := auditLoop(n.ctx, parts); err != nil {
			n.fail(err)
		}
	})
	if n.listeners.http != nil {
		n.http = &http.Server{Handler: httpHandler(n.parts.Registry, parts.Serves), ReadHeaderTimeout: 10 * time.Second}
		n.joined.Go(func() { n.serveUntilStopped("HTTP", func() error { return n.http.Serve(n.listeners.http) }) })
	}
	return nil
}

func (n *Node) serveUntilStopped(what string, serve func() error) {
	if err := serve(); err != nil && n.ctx.Err() == nil {
		n.fail(fmt.Errorf("the %s server has stopped: %w", what, err))
	}
}

// fail ends the node: the first cause counts.
func (n *Node) fail(err error) {
	n.failure.Do(func() {
		n.parts.Logger.Error("this node stops", "error", err)
		n.err = err
		close(n.done)
	})
}

// Done is closed when the node has met something that it must not go on with. It
// still has to be closed.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err returns why Done was closed, nil before.
func (n *Node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

// Close stops the node and returns when everything of it has ended: it refuses new
// calls, hands leadership over if it has it, and closes its files. Idempotent.
func (n *Node) Close() error {
	n.closing.Do(func() { n.closed = n.shutDown() })
	return n.closed
}

func (n *Node) shutDown() error {
	var errs []error
	if n.health != nil {
		n.health.Close()
	}
	n.stop()
	if n.raft != nil {
		errs = append(errs, n.raft.Close())
	}
	for _, s := range n.servers {
		s.Stop()
	}
	if n.http != nil {
		errs = append(errs, n.http.Close())
	}
	if n.peers != nil {
		errs = append(errs, n.peers.close())
	}
	if n.core != nil {
		errs = append(errs, n.core.port.Close())
	}
	n.joined.Wait()
	if n.state != nil {
		errs = append(errs, n.state.Close())
	}
	if n.stores != nil {
		errs = append(errs, n.stores.Close())
	}
	return errors.Join(append(errs, n.release())...)
}

// release gives back what others may be waiting for. Listeners that a server has
// taken are closed already.
func (n *Node) release() error {
	var errs []error
	for _, ln := range []net.Listener{n.listeners.peer, n.listeners.api, n.listeners.http} {
		if ln == nil {
			continue
		}
		if err := ln.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if n.lock != nil {
		errs = append(errs, n.lock.Close())
	}
	return errors.Join(errs...)
}
