package sim

import (
	"context"
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/raftnet"
)

// machine is what stays of a node whatever happens to its process: its name, clock,
// disk, and place on the network. Its fields are guarded by the cluster's mutex.
type machine struct {
	cluster *Cluster
	host    host
	config  node.Config
	clock   *clock
	tuning  raftnet.Tuning
	censor  censor  // of what raft sends, nil for none
	drift   float64 // of the clock, when nothing is done to it
	disk    nemesis.DiskState
	stopped bool
	lives   int
	life    *life // the running process, nil if none
	dir     string
}

// life is one process of a node, from its start to its death. A process cannot be
// killed inside a program; what can be done is that nothing of it is heard or kept any
// more. So a life that was killed goes on for a moment as a ghost: off the network, on a
// folder that nobody will read, until it has been closed.
type life struct {
	machine *machine
	drive   *drive
	dir     string
	ctx     context.Context // ends with the life
	end     context.CancelFunc

	asked    chan struct{} // has a token when it was asked to end
	wake     chan time.Time
	waking   atomic.Bool
	leads    atomic.Pointer[func() bool] // set once its storage is open
	registry *prometheus.Registry
}

// start begins a new life of m, unless one runs. It does not wait until it serves.
func (m *machine) start() {
	c := m.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.life != nil || c.closed {
		return
	}
	m.lives++
	l := &life{
		machine: m, drive: newDrive(c.seed+uint64(m.host)<<32+uint64(m.lives)<<40, nemesis.DiskHealthy), dir: m.dir,
		asked: make(chan struct{}, 1), wake: make(chan time.Time, 1), registry: prometheus.NewRegistry(),
	}
	l.ctx, l.end = context.WithCancel(context.Background())
	l.drive.fail = func() { m.kill(l, exited, exitText(node.ExitStorage)+"a write failed") }
	m.life = l
	m.bringDiskLocked()
	c.event(m, "started", "")
	c.joined.Go(l.run)
}

// run opens the node and closes it when the life has ended.
func (l *life) run() {
	config := l.machine.config
	config.DataDir = l.dir
	opened, err := node.Open(l.ctx, config, l.parts())
	if err != nil {
		if l.ctx.Err() == nil {
			l.machine.kill(l, exited, exitText(node.ExitCode(err))+err.Error())
		}
		l.bury()
		return
	}
	var why string
	select {
	case <-l.ctx.Done():
	case <-opened.Done():
		why = exitText(node.ExitCode(opened.Err())) + opened.Err().Error()
	case <-l.asked:
		why = exitText(0) + "it was asked to end"
	}
	if err := opened.Close(); err != nil {
		l.machine.cluster.logger.Debug("close", "node", config.ID, "error", err)
	}
	l.machine.kill(l, exited, why)
	l.bury()
}

// bury removes the folder, if the life was killed and has left its image elsewhere.
func (l *life) bury() {
	c := l.machine.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.dir != l.machine.dir {
		_ = os.RemoveAll(l.dir)
	}
}

func (l *life) parts() node.Parts {
	m, c := l.machine, l.machine.cluster
	p := node.Parts{
		Clock:  m.clock,
		Logger: c.logger.Named(m.config.ID),
		Listen: l.listen,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer context.AfterFunc(l.ctx, cancel)()
			return c.dial(ctx, l, addr)
		},
		OpenStores: l.openStores,
		Exit:       func(err error) { m.kill(l, exited, exitText(node.ExitCode(err))+err.Error()) },
		NewTransport: func(port *raftnet.Port, logger hclog.Logger) raftnet.Transport {
			return &transport{raftnet.NewTransport(port, logger), m.censor}
		},
		Tuning:   m.tuning,
		Registry: l.registry,
	}
	return p
}

func (l *life) listen(addr string) (net.Listener, error) {
	ln, err := l.machine.cluster.network.listen(l.machine.host, addr)
	if err == nil && l.ctx.Err() != nil { // died before
		return nil, errors.Join(net.ErrClosed, ln.Close())
	}
	return ln, err
}

// kill ends life l of m at this instant: the network takes nothing more from it, and
// the next life finds what the disk has now. It does nothing if l has ended.
func (m *machine) kill(l *life, what, detail string) {
	c := m.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if l == nil || m.life != l {
		return
	}
	m.life = nil
	if m.stopped {
		c.standLocked(m, false)
	}
	l.end()
	c.network.down(m.host)
	next, err := os.MkdirTemp(c.dir, m.config.ID+"-")
	if err == nil {
		err = l.drive.image(l.dir, next)
	}
	if err != nil {
		c.fail(err)
	}
	m.dir = next
	l.drive.end()
	c.event(m, what, detail)
}

// running returns the life of m, nil if none.
func (m *machine) running() *life {
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	return m.life
}

// bringDiskLocked puts the disk of m into the state that it was given, or has it hang
// while m stands still.
func (m *machine) bringDiskLocked() {
	l := m.life
	if l == nil {
		return
	}
	state := m.disk
	if m.stopped {
		l.drive.set(nemesis.DiskHanging)
		return // the watchdog stands still too
	}
	l.drive.set(state)
	if state == nemesis.DiskHanging && l.waking.CompareAndSwap(false, true) {
		m.cluster.joined.Go(l.wakeLoop)
	}
}

// leading is what a process says about whether it leads, and in which term.
func (l *life) leading() (term float64, leads bool) {
	elected := l.leads.Load()
	if elected == nil || !(*elected)() {
		return 0, false
	}
	return l.term(), true
}

// term is the term that a process says it is in, 0 if it says nothing.
func (l *life) term() float64 {
	families, err := l.registry.Gather()
	if err != nil {
		return 0
	}
	for _, family := range families {
		if family.GetName() == "leasenode_term" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return 0
}

// event notes an event of m.
func (c *Cluster) event(m *machine, what, detail string) {
	if c.options.Recorder != nil {
		c.options.Recorder.AddEvent(history.NodeEvent{Node: m.config.ID, What: what, At: c.Now(), Detail: detail})
	}
}
