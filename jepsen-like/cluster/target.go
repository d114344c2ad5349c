package cluster

import (
	"errors"
	"fmt"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// Nodes implements [nemesis.Target].
func (c *Cluster) Nodes() int { return len(c.members) }

// Kill implements [nemesis.Target].
func (c *Cluster) Kill(node int) error { return c.do("kill", node, (*member).kill) }

// Start implements [nemesis.Target].
func (c *Cluster) Start(node int) error { return c.do("start", node, (*member).start) }

// Terminate implements [nemesis.Target]. It does not wait for the end.
func (c *Cluster) Terminate(node int) error { return c.do("terminate", node, (*member).terminate) }

// Stop implements [nemesis.Target].
func (c *Cluster) Stop(node int) error {
	return c.do("stop", node, func(m *member) error {
		p := m.running()
		if p == nil || p.stopped {
			return nil
		}
		if err := PID(p.cmd.Process.Pid).Stop(); err != nil {
			return err
		}
		p.stopped = true
		c.tell(m, "stopped", "")
		return nil
	})
}

// Continue implements [nemesis.Target].
func (c *Cluster) Continue(node int) error {
	return c.do("continue", node, func(m *member) error {
		p := m.running()
		if p == nil || !p.stopped {
			return nil
		}
		if err := PID(p.cmd.Process.Pid).Continue(); err != nil {
			return err
		}
		p.stopped = false
		c.tell(m, "continued", "")
		return nil
	})
}

// SetClock implements [nemesis.Target]. A rate outlives a restart of the node, a jump
// does not: a clock that begins anew has nothing to jump from.
func (c *Cluster) SetClock(node int, clock nemesis.ClockState) error {
	return c.do("set the clock of", node, func(m *member) error { return m.setClock(clock) })
}

// SetDisk implements [nemesis.Target]. The state outlives a restart of the node.
func (c *Cluster) SetDisk(node int, disk nemesis.DiskState) error {
	return c.do("change the disk of", node, func(m *member) error { return m.setDisk(disk) })
}

func (c *Cluster) do(what string, node int, do func(*member) error) error {
	m := c.members[node]
	if err := do(m); err != nil {
		return fmt.Errorf("%s %s: %w", what, m.id, err)
	}
	return nil
}

// Holder is a process of the workload that can be made to stand still.
type Holder interface {
	Stop() error
	Continue() error
}

// PID is a process, by its id.
type PID int

// Holders implements [nemesis.Target]: a cluster alone has none.
func (c *Cluster) Holders() int { return 0 }

// StopHolder implements [nemesis.Target].
func (c *Cluster) StopHolder(int) error { return errNoHolder }

// ContinueHolder implements [nemesis.Target].
func (c *Cluster) ContinueHolder(int) error { return errNoHolder }

var errNoHolder = errors.New("there is no such holder")

// WithHolders returns the cluster and the holders of a workload as one target.
func (c *Cluster) WithHolders(holders []Holder) nemesis.Target {
	return &peopled{c, holders}
}

type peopled struct {
	*Cluster
	holders []Holder
}

func (p *peopled) Holders() int { return len(p.holders) }

func (p *peopled) StopHolder(holder int) error { return p.holders[holder].Stop() }

func (p *peopled) ContinueHolder(holder int) error { return p.holders[holder].Continue() }
