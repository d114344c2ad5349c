package node_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
)

// movedWall is a clock whose time of day somebody sets.
type movedWall struct {
	lease.Clock
	years atomic.Int64
}

func (m *movedWall) Wall() time.Time { return m.Clock.Wall().AddDate(int(m.years.Load()), 0, 0) }

// Wall clocks a year ahead and a year behind, under nodes and holder, through a change
// of leaders: the lease stays, and ends when it should.
func TestWallClocksDecideNothingForAHolder(t *testing.T) {
	c := newCluster(t, 3)
	clocks := map[string]*movedWall{}
	for _, p := range c.peers {
		clocks[p.ID] = &movedWall{Clock: c.clock}
	}
	c.change = func(cfg *node.Config, parts *node.Parts) { parts.Clock = clocks[cfg.ID] }
	c.startAll()
	mine := &movedWall{Clock: holder.NewClock()}
	client := c.dial()
	var fences atomic.Int64
	h, err := holder.New(client, holder.Config{Owner: "r1", TTL: 10 * time.Second, Clock: mine, OnChange: func(change holder.Change) {
		if change.State == holder.StateFenced || change.State == holder.StateLost {
			fences.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.Acquire(c.within(time.Minute), "k")
	if err != nil {
		t.Fatal(err)
	}
	for i, years := range []int64{1, -1} {
		clocks[c.peers[0].ID].years.Store(years)
		clocks[c.peers[1].ID].years.Store(-years)
		mine.years.Store(years)
		if i == 1 {
			c.stop(c.leader())
			c.leader()
		}
		if err := l.Renew(c.within(time.Minute)); err != nil {
			t.Errorf("renew: %v", err)
		}
		answer, err := client.Get(c.within(time.Minute), lease.GetRequest{Key: "k"})
		if err != nil || answer.Record.Epoch != 1 || answer.Remaining < 5*time.Second || answer.Remaining > 10*time.Second {
			t.Errorf("with clocks %d years off: %+v, %v", years, answer, err)
		}
		if left := l.Remaining(); left < 4*time.Second || left > 8*time.Second {
			t.Errorf("the holder has %v left", left)
		}
	}
	h.Close() // and tells nobody
	start := time.Now()
	other, err := holder.New(client, holder.Config{Owner: "r2", TTL: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	next, err := other.Await(c.within(time.Minute), "k")
	if err != nil || next.Epoch() != 2 {
		t.Fatalf("the next: %v, %v", next, err)
	}
	if took := time.Since(start); took < 5*time.Second {
		t.Errorf("the next waited only %v", took)
	}
	if fences.Load() != 0 {
		t.Errorf("fenced %d times", fences.Load())
	}
}
