package sim

import (
	"context"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// Nodes implements [nemesis.Target].
func (c *Cluster) Nodes() int { return len(c.machines) }

// Holders implements [nemesis.Target].
func (c *Cluster) Holders() int { return len(c.holders) }

// Leader implements [nemesis.Target]: it asks the processes themselves.
func (c *Cluster) Leader(context.Context) (int, bool) {
	best, newest, found := 0, 0.0, false
	for i, m := range c.machines {
		l := m.running()
		if l == nil {
			continue
		}
		if term, leads := l.leading(); leads && term >= newest {
			best, newest, found = i, term, true
		}
	}
	return best, found
}

// SetLink implements [nemesis.Target].
func (c *Cluster) SetLink(from, to int, state nemesis.LinkState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.links[route{host(from), host(to)}] = state
	c.bringLocked(route{host(from), host(to)})
}

// SetClientLink implements [nemesis.Target].
func (c *Cluster) SetClientLink(node int, state nemesis.LinkState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range 1 + len(c.holders) {
		for _, r := range both(host(node), clientHost(i)) {
			c.links[r] = state
			c.bringLocked(r)
		}
	}
}

func both(a, b host) []route { return []route{{a, b}, {b, a}} }

// bringLocked puts a way into the state that it was given, or cuts it if one of its
// hosts stands still.
func (c *Cluster) bringLocked(r route) {
	state := c.links[r]
	state.Cut = state.Cut || c.standsLocked(r.from) || c.standsLocked(r.to)
	c.network.set(r, state)
}

func (c *Cluster) standsLocked(h host) bool {
	switch {
	case h >= 0:
		return c.machines[h].stopped
	case h == outside:
		return false
	default:
		return c.holders[holderOf(h)].stopped()
	}
}

// Kill implements [nemesis.Target].
func (c *Cluster) Kill(node int) error {
	m := c.machines[node]
	m.kill(m.running(), "killed", "")
	return nil
}

// Start implements [nemesis.Target].
func (c *Cluster) Start(node int) error {
	c.machines[node].start()
	return nil
}

// Terminate implements [nemesis.Target].
func (c *Cluster) Terminate(node int) error {
	if l := c.machines[node].running(); l != nil {
		select {
		case l.asked <- struct{}{}:
		default:
		}
	}
	return nil
}

// Stop implements [nemesis.Target]. A goroutine cannot be stopped from outside: the
// node's disk hangs and its network holds everything, which stops whatever leaves a
// trace, but its timers go on.
func (c *Cluster) Stop(node int) error { c.stand(node, true); return nil }

// Continue implements [nemesis.Target].
func (c *Cluster) Continue(node int) error { c.stand(node, false); return nil }

func (c *Cluster) stand(node int, still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.machines[node]; m.life != nil {
		c.standLocked(m, still)
	}
}

func (c *Cluster) standLocked(m *machine, still bool) {
	m.stopped = still
	m.bringDiskLocked()
	c.bringAllLocked(m.host)
}

// bringAllLocked brings all ways to and from h.
func (c *Cluster) bringAllLocked(h host) {
	for i := range c.machines {
		if host(i) != h {
			for _, r := range both(h, host(i)) {
				c.bringLocked(r)
			}
		}
	}
	for i := range 1 + len(c.holders) {
		for _, r := range both(h, clientHost(i)) {
			if h >= 0 {
				c.bringLocked(r)
			}
		}
	}
}

// StopHolder implements [nemesis.Target]. What the holder does, sees and says waits;
// the goroutines of its library go on, and reach nobody.
func (c *Cluster) StopHolder(holder int) error { c.standHolder(holder, true); return nil }

// ContinueHolder implements [nemesis.Target].
func (c *Cluster) ContinueHolder(holder int) error { c.standHolder(holder, false); return nil }

func (c *Cluster) standHolder(holder int, still bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holders[holder].stand(still)
	c.bringAllLocked(clientHost(1 + holder))
}

// SetClock implements [nemesis.Target].
func (c *Cluster) SetClock(node int, state nemesis.ClockState) error {
	m := c.machines[node]
	m.clock.set(m.drift+state.Rate, state.Jump)
	return nil
}

// SetDisk implements [nemesis.Target].
func (c *Cluster) SetDisk(node int, state nemesis.DiskState) error {
	m := c.machines[node]
	c.mu.Lock()
	defer c.mu.Unlock()
	m.disk = state
	m.bringDiskLocked()
	return nil
}
