package nemesis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// target notes what is done to it, and is in the state that real processes would be in.
type target struct {
	nodes, holders int
	leader         int
	began          time.Time

	mu      sync.Mutex
	log     []string
	links   map[[2]int]nemesis.LinkState
	clients map[int]nemesis.LinkState
	down    map[int]bool
	stopped map[int]bool
	asleep  map[int]bool // holders
	clocks  map[int]nemesis.ClockState
	jumped  time.Duration
	disks   map[int]nemesis.DiskState
	refuse  error // of Kill
}

func newTarget(nodes, holders int) *target {
	return &target{
		nodes: nodes, holders: holders, leader: -1, began: time.Now(),
		links: map[[2]int]nemesis.LinkState{}, clients: map[int]nemesis.LinkState{}, down: map[int]bool{},
		stopped: map[int]bool{}, asleep: map[int]bool{}, clocks: map[int]nemesis.ClockState{}, disks: map[int]nemesis.DiskState{},
	}
}

func (c *target) do(f func(), format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, fmt.Sprintf("%v ", time.Since(c.began))+fmt.Sprintf(format, args...))
	f()
}

func (c *target) Nodes() int                                 { return c.nodes }
func (c *target) Holders() int                               { return c.holders }
func (c *target) Leader(context.Context) (node int, ok bool) { return c.leader, c.leader >= 0 }

func (c *target) SetLink(from, to int, state nemesis.LinkState) {
	c.do(func() { c.links[[2]int{from, to}] = state }, "link %d %d %+v", from, to, state)
}

func (c *target) SetClientLink(node int, state nemesis.LinkState) {
	c.do(func() { c.clients[node] = state }, "client %d %+v", node, state)
}

func (c *target) Kill(node int) error {
	c.do(func() { c.down[node], c.stopped[node] = true, false }, "kill %d", node)
	return c.refuse
}

func (c *target) Start(node int) error {
	c.mu.Lock()
	down := c.down[node]
	c.mu.Unlock()
	if down {
		c.do(func() { c.down[node] = false }, "start %d", node)
	}
	return nil
}

func (c *target) Terminate(node int) error {
	c.do(func() { c.down[node] = !c.stopped[node] }, "terminate %d", node)
	return nil
}

func (c *target) Stop(node int) error {
	c.do(func() { c.stopped[node] = !c.down[node] }, "stop %d", node)
	return nil
}

func (c *target) Continue(node int) error {
	c.do(func() { c.stopped[node] = false }, "continue %d", node)
	return nil
}

func (c *target) StopHolder(h int) error {
	c.do(func() { c.asleep[h] = true }, "stop holder %d", h)
	return nil
}

func (c *target) ContinueHolder(h int) error {
	c.do(func() { c.asleep[h] = false }, "continue holder %d", h)
	return nil
}

func (c *target) SetClock(node int, clock nemesis.ClockState) error {
	c.do(func() { c.clocks[node] = nemesis.ClockState{Rate: clock.Rate}; c.jumped += clock.Jump }, "clock %d %+v", node, clock)
	return nil
}

func (c *target) SetDisk(node int, disk nemesis.DiskState) error {
	c.do(func() {
		c.disks[node] = disk
		if disk == nemesis.DiskFailing || disk == nemesis.DiskDeadly {
			c.down[node] = true
		}
	}, "disk %d %q", node, disk)
	return nil
}

// healthy fails the test if anything is left done to the target.
func (c *target) healthy(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for link, state := range c.links {
		if state != (nemesis.LinkState{}) {
			t.Errorf("link %v is left %+v", link, state)
		}
	}
	for node := range c.nodes {
		if c.clients[node] != (nemesis.LinkState{}) || c.down[node] || c.stopped[node] || c.clocks[node] != (nemesis.ClockState{}) || c.disks[node] != "" {
			t.Errorf("node %d is left client %+v, down %v, stopped %v, clock %+v, disk %q", node, c.clients[node], c.down[node], c.stopped[node], c.clocks[node], c.disks[node])
		}
	}
	for h, asleep := range c.asleep {
		if asleep {
			t.Errorf("holder %d is left stopped", h)
		}
	}
}

var errRefused = errors.New("refused")
