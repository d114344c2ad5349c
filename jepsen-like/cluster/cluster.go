package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasenode/leasenode/internal/portblock"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// Program is which program the nodes run.
type Program string

// The programs.
const (
	Leasenode Program = "leasenode"
	Chaosnode Program = "chaosnode"
)

// Config says what to run.
type Config struct {
	// Dir is the folder of the cluster, made if it is missing. It must not have one yet.
	Dir string
	// Nodes is how many nodes there are: odd, 1 or more.
	Nodes int
	// Program is what the nodes run, and Binary where it is.
	Program Program
	Binary  string
	// Broken has a chaosnode break a promise in the way of that name; "" for none.
	Broken string
	// LogStores are how the nodes keep their logs, in turns: bolt or wal. None leaves it to
	// the program.
	LogStores []string
	// Flags are added to the command line of each node.
	Flags []string
	// Mount puts what each node keeps on a small disk of its own in memory, that can be
	// made full, if this program may do that (Linux, root). It is gone after Close.
	Mount bool
	// OnEvent is told what happens to nodes, from any goroutine, one at a time. May be
	// nil. It must not call the cluster.
	OnEvent func(history.NodeEvent)
	// Now is the harness's clock; nil for the time since Open.
	Now func() time.Duration
}

func (c Config) validate() error {
	var faults []error
	if c.Nodes < 1 || c.Nodes%2 == 0 {
		faults = append(faults, fmt.Errorf("a cluster of %d nodes: it has to be an odd number", c.Nodes))
	}
	if c.Program != Leasenode && c.Program != Chaosnode {
		faults = append(faults, fmt.Errorf("there is no program %q: it is %s or %s", c.Program, Leasenode, Chaosnode))
	}
	if c.Broken != "" && c.Program != Chaosnode {
		faults = append(faults, fmt.Errorf("only %s can be broken (%s)", Chaosnode, c.Broken))
	}
	if c.Dir == "" || c.Binary == "" {
		faults = append(faults, errors.New("a cluster needs a folder and a binary"))
	}
	return errors.Join(faults...)
}

// Cluster is a running cluster. The methods of [nemesis.Target] are for one goroutine at
// a time; all others are safe for concurrent use.
type Cluster struct {
	cfg     Config
	members []*member
	ports   *portblock.Block
	network *network

	telling sync.Mutex
	closing sync.Once
	closed  error
}

var _ nemesis.Target = (*Cluster)(nil)

// Open starts a cluster and returns when its processes run; [Cluster.Ready] waits until
// they serve. On an error nothing is left running.
func Open(ctx context.Context, cfg Config) (*Cluster, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	if cfg.Now == nil {
		began := time.Now()
		cfg.Now = func() time.Duration { return time.Since(began) }
	}
	c := &Cluster{cfg: cfg}
	if err := errors.Join(c.prepare(), ctx.Err()); err != nil {
		return nil, errors.Join(fmt.Errorf("start a cluster: %w", err), c.Close())
	}
	for i := range c.members {
		if err := c.Start(i); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// prepare does everything but to start nodes.
func (c *Cluster) prepare() error {
	n := c.cfg.Nodes
	var err error
	if c.ports, err = portblock.Claim(); err != nil {
		return err
	}
	addrs, err := c.ports.Addrs(2*n + n*n)
	if err != nil {
		return err
	}
	peers, apis, proxies := addrs[:n], addrs[n:2*n], addrs[2*n:]
	if c.network, err = openNetwork(peers, apis, proxies); err != nil {
		return err
	}
	var list []string
	for i, addr := range peers {
		list = append(list, nodeName(i)+"="+addr)
	}
	for i := range n {
		m := &member{
			cluster: c, index: i, id: nodeName(i), api: apis[i],
			dir: filepath.Join(c.cfg.Dir, nodeName(i)), log: filepath.Join(c.cfg.Dir, nodeName(i)+".log"),
		}
		m.args = c.arguments(m, peers[i], strings.Join(list, ","))
		if entries, err := os.ReadDir(m.dir); err == nil && len(entries) > 0 {
			return fmt.Errorf("%s is not empty: name a new folder", m.dir)
		}
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if c.cfg.Mount {
			m.mounted = mount(m.dir) == nil // Controls says whether
		}
		c.members = append(c.members, m)
	}
	return nil
}

func (c *Cluster) arguments(m *member, peer, list string) []string {
	var args []string
	if c.cfg.Program == Leasenode {
		args = append(args, "serve")
	} else {
		args = append(args, "--control", "--broken", c.cfg.Broken)
	}
	args = append(args,
		"--id", m.id, "--data-dir", m.dir, "--peer-addr", peer, "--cluster", list,
		"--api-addr", c.network.clients[m.index].Addr(), "--api-listen", m.api,
	)
	if dial := c.network.dialFlag(m.index); dial != "" {
		args = append(args, "--dial", dial)
	}
	if n := len(c.cfg.LogStores); n > 0 {
		args = append(args, "--log-store", c.cfg.LogStores[m.index%n])
	}
	return append(args, c.cfg.Flags...)
}

// Close kills all nodes and returns when nothing of the cluster runs any more.
// Idempotent.
func (c *Cluster) Close() error {
	c.closing.Do(func() {
		var faults []error
		for _, m := range c.members {
			faults = append(faults, m.close())
		}
		if c.network != nil {
			c.network.close()
		}
		if c.ports != nil {
			_ = c.ports.Close()
		}
		c.closed = errors.Join(faults...)
	})
	return c.closed
}

// Names returns the names of the nodes, in order.
func (c *Cluster) Names() []string {
	var names []string
	for _, m := range c.members {
		names = append(names, m.id)
	}
	return names
}

// Endpoints returns where clients reach the nodes, in order: the proxies before them.
func (c *Cluster) Endpoints() []string {
	var addrs []string
	for _, p := range c.network.clients {
		addrs = append(addrs, p.Addr())
	}
	return addrs
}

// Direct returns the addresses of the nodes themselves, in order, on which no fault of
// the network has any effect.
func (c *Cluster) Direct() []string {
	var addrs []string
	for _, m := range c.members {
		addrs = append(addrs, m.api)
	}
	return addrs
}

// Log returns the file with what a node said.
func (c *Cluster) Log(node int) string { return c.members[node].log }

// PID returns the process id of a node; false if it does not run.
func (c *Cluster) PID(node int) (int, bool) {
	p := c.members[node].running()
	if p == nil {
		return 0, false
	}
	return p.cmd.Process.Pid, true
}

func (c *Cluster) tell(m *member, what, detail string) {
	if c.cfg.OnEvent == nil {
		return
	}
	c.telling.Lock()
	defer c.telling.Unlock()
	c.cfg.OnEvent(history.NodeEvent{Node: m.id, What: what, At: c.cfg.Now(), Detail: detail})
}

// Controls says which faults are possible besides those of links and processes.
type Controls struct {
	Clocks bool
	Disks  []nemesis.DiskState
	// Pauses says that processes can be stopped and continued.
	Pauses bool
}

// Controls returns which faults are possible.
func (c *Cluster) Controls() Controls {
	if c.cfg.Program == Chaosnode {
		return Controls{Clocks: true, Pauses: canPause, Disks: []nemesis.DiskState{
			nemesis.DiskHealthy, nemesis.DiskFull, nemesis.DiskFailing, nemesis.DiskReadOnly, nemesis.DiskSlow,
			nemesis.DiskHanging, nemesis.DiskDeadly,
		}}
	}
	controls := Controls{Pauses: canPause, Disks: []nemesis.DiskState{nemesis.DiskHealthy}}
	if !slices.ContainsFunc(c.members, func(m *member) bool { return !m.mounted }) {
		controls.Disks = append(controls.Disks, nemesis.DiskFull)
	}
	return controls
}

// Possible returns the kinds of faults that can be done.
func (c Controls) Possible(kinds []nemesis.Kind) []nemesis.Kind {
	disks := map[nemesis.Kind]nemesis.DiskState{
		nemesis.DiskIsFull: nemesis.DiskFull, nemesis.DiskFails: nemesis.DiskFailing,
		nemesis.DiskIsReadOnly: nemesis.DiskReadOnly, nemesis.DiskIsSlow: nemesis.DiskSlow,
		nemesis.DiskIsHanging: nemesis.DiskHanging, nemesis.KillSnapshot: nemesis.DiskDeadly,
	}
	return slices.DeleteFunc(slices.Clone(kinds), func(kind nemesis.Kind) bool {
		if disk, needed := disks[kind]; needed {
			return !slices.Contains(c.Disks, disk)
		}
		switch nemesis.GroupOf(kind) {
		case nemesis.Clock:
			return !c.Clocks
		case nemesis.Pause:
			return !c.Pauses
		default:
			return false
		}
	})
}
