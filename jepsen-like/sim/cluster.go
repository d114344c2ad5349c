package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// Config is what a [Cluster] is made from.
type Config struct {
	// Seed makes the network's delays, the disks' and the clocks' rates.
	Seed uint64
	// Nodes and Holders are how many there are.
	Nodes, Holders int
	Tuning         raftnet.Tuning
	// Dir is where the nodes' folders are made.
	Dir string
	// Log is how nodes keep their logs; empty for what the seed says: all of them in one
	// way, or some in the other.
	Log disk.LogKind
	// Logger hears of everything that nodes log; nil for nobody.
	Logger hclog.Logger
	// Recorder hears of what happens to nodes; may be nil.
	Recorder *history.Recorder
}

// Cluster is a cluster of whole nodes in this process, on a network, clocks and disks
// of its own. It lives in a bubble of package testing/synctest and has to be closed in
// it. It is a [nemesis.Target]; its methods are safe for concurrent use.
type Cluster struct {
	options  Config
	seed     uint64
	dir      string
	logger   hclog.Logger
	began    time.Time
	network  *network
	logbook  *logbook
	machines []*machine
	holders  []*replica
	joined   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	links   map[route]nemesis.LinkState // as they were set
	failure error                       // of the simulation itself
}

var _ nemesis.Target = (*Cluster)(nil)

// logOf returns how node i keeps its log.
func (c Config) logOf(i int) disk.LogKind {
	kinds := disk.LogKinds()
	switch way := c.Seed % 3; {
	case c.Log != "":
		return c.Log
	case way < uint64(len(kinds)):
		return kinds[way]
	default:
		return kinds[(c.Seed/3+uint64(i))%uint64(len(kinds))]
	}
}

// NewCluster returns a cluster of nodes n1, n2, ..., none of them started.
func NewCluster(cfg Config) (*Cluster, error) {
	dir, err := os.MkdirTemp(cfg.Dir, "leasenode-sim-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the nodes: %w", err)
	}
	c := &Cluster{options: cfg, seed: cfg.Seed, dir: dir, logger: cfg.Logger, began: time.Now(), network: newNetwork(cfg.Seed), logbook: newLogbook(), links: map[route]nemesis.LinkState{}}
	if c.logger == nil {
		c.logger = hclog.NewNullLogger()
	}
	random := rand.New(rand.NewPCG(cfg.Seed, 0x636c6f636b))
	var peers []node.Peer
	for i := range cfg.Nodes {
		peers = append(peers, node.Peer{ID: nodeName(i), Addr: peerAddr(i)})
	}
	for i := range cfg.Nodes {
		m := &machine{cluster: c, host: host(i), tuning: cfg.Tuning, drift: drift(random, nodeDrift), config: node.Config{
			ID: nodeName(i), PeerAddr: peerAddr(i), APIAddr: apiAddr(i), Cluster: peers, DataDir: "set at each start", LogStore: cfg.logOf(i),
		}}
		if m.dir, err = os.MkdirTemp(dir, nodeName(i)+"-"); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
		m.clock = newClock(m.drift)
		m.clock.wall = time.Duration(random.Int64N(int64(4*time.Hour))) - 2*time.Hour
		c.machines = append(c.machines, m)
	}
	for i := range cfg.Holders {
		c.holders = append(c.holders, newReplica(c, i, drift(random, holderDrift)))
	}
	return c, nil
}

// Clocks run right to within these, besides what a schedule does to them.
const (
	nodeDrift   = 0.01
	holderDrift = 0.05
)

func drift(random *rand.Rand, most float64) float64 { return (2*random.Float64() - 1) * most }

func nodeName(i int) string { return fmt.Sprintf("n%d", i+1) }
func peerAddr(i int) string { return nodeName(i) + ":7101" }
func apiAddr(i int) string  { return nodeName(i) + ":7201" }

// hostOf returns whose address it is.
func (c *Cluster) hostOf(addr string) (host, bool) {
	name, _, _ := strings.Cut(addr, ":")
	for i, m := range c.machines {
		if m.config.ID == name {
			return host(i), true
		}
	}
	return outside, false
}

// Now is the time since the cluster was made.
func (c *Cluster) Now() time.Duration { return time.Since(c.began) }

// Endpoints are the addresses of all nodes for clients.
func (c *Cluster) Endpoints() []string {
	var endpoints []string
	for _, m := range c.machines {
		endpoints = append(endpoints, m.config.APIAddr)
	}
	return endpoints
}

// StartAll starts all nodes.
func (c *Cluster) StartAll() {
	for _, m := range c.machines {
		m.start()
	}
}

// Close ends all nodes and returns when nothing of them runs any more. It returns what
// went wrong with the simulation itself, if anything did.
func (c *Cluster) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	for _, m := range c.machines {
		m.kill(m.running(), "killed", "the run is over")
	}
	c.joined.Wait()
	c.network.close()
	return errors.Join(c.failure, os.RemoveAll(c.dir))
}

func (c *Cluster) fail(err error) { c.failure = errors.Join(c.failure, err) }

// dialFrom returns what connects h to any node.
func (c *Cluster) dialFrom(h host) func(ctx context.Context, addr string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		to, ok := c.hostOf(addr)
		if !ok {
			return nil, fmt.Errorf("there is no machine %s", addr)
		}
		return c.network.dial(ctx, h, to, addr)
	}
}

// dial connects a node's process to another.
func (c *Cluster) dial(ctx context.Context, l *life, addr string) (net.Conn, error) {
	conn, err := c.dialFrom(l.machine.host)(ctx, addr)
	if err == nil && l.ctx.Err() != nil { // died meanwhile
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	return conn, err
}

// Client returns a client of the endpoints given; of all nodes if none are.
func (c *Cluster) Client(endpoints ...string) (*holder.Client, error) {
	if len(endpoints) == 0 {
		endpoints = c.Endpoints()
	}
	return holder.Dial(endpoints, holder.DialWith(c.dialFrom(outside)))
}
