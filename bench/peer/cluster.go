package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/bench/proc"
)

// members is how many processes a cluster has.
const members = 3

const (
	// readyTimeout bounds a start, on a machine that is busy with others.
	readyTimeout = time.Minute
	// probeTimeout bounds one look at one member.
	probeTimeout = 2 * time.Second
	// probePause is between two looks. It bounds how exactly a time to be ready is known.
	probePause = 10 * time.Millisecond
)

// role is what a member that serves is.
type role uint8

const (
	follows role = iota
	leads
)

// Cluster is a running system. Its methods are safe for concurrent use.
type Cluster struct {
	name, version string
	addrs         []string // for clients
	data          []string // folders; of leasenode only
	metrics       []string // URLs; of leasenode only
	commands      []proc.Command
	// probe looks at a member by its client address; an error means that it does not
	// serve now.
	probe func(ctx context.Context, addr string) (role, error)

	mu        sync.Mutex
	processes []*proc.Process
}

// Name is the system's.
func (c *Cluster) Name() string { return c.name }

// Version is the system's, as it says itself.
func (c *Cluster) Version() string { return c.version }

// Addrs are the client addresses of all members: host:port.
func (c *Cluster) Addrs() []string { return c.addrs }

// Data are the data directories of the members, of leasenode only.
func (c *Cluster) Data() []string { return c.data }

// Metrics are the URLs of the members' metrics, of leasenode only.
func (c *Cluster) Metrics() []string { return c.metrics }

// start starts all members and waits until all of them serve and one leads. If that
// fails, none is left running.
func (c *Cluster) start(ctx context.Context) (*Cluster, error) {
	c.processes = make([]*proc.Process, len(c.commands))
	for i, command := range c.commands {
		p, err := proc.Start(command)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.processes[i] = p
	}
	if err := c.AwaitReady(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Pids are the process ids of the members.
func (c *Cluster) Pids() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	var pids []int
	for _, p := range c.processes {
		pids = append(pids, p.Pid())
	}
	return pids
}

// Leader returns the number of the member that leads.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	var failed error
	for i, addr := range c.addrs {
		switch role, err := c.look(ctx, addr); {
		case err != nil:
			failed = err
		case role == leads:
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s: no member says that it leads: %w", c.name, errors.Join(failed, ctx.Err()))
}

func (c *Cluster) look(ctx context.Context, addr string) (role, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return c.probe(ctx, addr)
}

// Kill kills a member with SIGKILL and returns when it is gone.
func (c *Cluster) Kill(member int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.processes[member].Kill()
}

// Restart starts a killed member again, on its data. It does not wait until it serves.
func (c *Cluster) Restart(member int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, err := proc.Start(c.commands[member])
	if err != nil {
		return err
	}
	c.processes[member] = p
	return nil
}

// AwaitReady returns when all members serve and one of them leads.
func (c *Cluster) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		failed := c.ready(ctx)
		if failed == nil {
			return nil
		}
		if err := c.ended(); err != nil {
			return err
		}
		if !Pause(ctx, probePause) {
			return fmt.Errorf("%s is not ready: %w: %w", c.name, failed, context.Cause(ctx))
		}
	}
}

// ready returns why the cluster is not ready, or nil.
func (c *Cluster) ready(ctx context.Context) error {
	leaders := 0
	for _, addr := range c.addrs {
		role, err := c.look(ctx, addr)
		if err != nil {
			return fmt.Errorf("%s: %w", addr, err)
		}
		if role == leads {
			leaders++
		}
	}
	if leaders != 1 {
		return fmt.Errorf("%d members say that they lead", leaders)
	}
	return nil
}

// ended returns why a member has ended, or nil.
func (c *Cluster) ended() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.processes {
		if err := p.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Close kills all members and returns when they are gone.
func (c *Cluster) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, p := range c.processes {
		if p != nil {
			err = errors.Join(err, p.Kill())
		}
	}
	return err
}

// Pause waits, and reports false if ctx ends first.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
