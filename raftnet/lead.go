package raftnet

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/fsm"
)

const (
	// openRetry is how long a leader waits before it tries again to open its term.
	openRetry = 50 * time.Millisecond
	// enqueueTimeout bounds how long raft may take to take an entry in.
	enqueueTimeout = time.Second
)

// leadLoop opens each term that this node leads, and notes when it leads no longer.
// raft's channel may skip values, but has always one after the last change; what
// counts is the state and the term then.
func (n *Node) leadLoop() {
	for {
		var again <-chan time.Time
		if n.raft.State() != raft.Leader {
			n.abdicate()
		} else if n.current() == nil {
			if err := n.openTerm(); err != nil && n.ctx.Err() == nil {
				n.cfg.Logger.Warn("could not open the term", "term", n.raft.CurrentTerm(), "error", err)
				again = time.After(openRetry)
			}
		}
		select {
		case <-n.ctx.Done():
			return
		case <-n.raft.LeaderCh():
		case <-n.reopen:
		case <-again:
		}
	}
}

func (n *Node) abdicate() {
	n.lines.end(n.notLeader())
	if r := n.reign.Swap(nil); r != nil {
		n.cfg.Logger.Info("no longer the leader", "term", r.term)
	}
	signal(n.turned)
	signal(n.reads.wake)
}

// openTerm commits the entry that opens the term. Only after its answer, which names
// the term that the log gave it and the cluster clock, does the monotonic clock count:
// noted earlier, it would run ahead by the time the entry took.
func (n *Node) openTerm() error {
	entry := fsm.EncodeOpening(fsm.Opening{Wall: n.cfg.Clock.Wall(), Settings: n.cfg.Settings})
	future := n.raft.Apply(entry, enqueueTimeout)
	ctx, cancel := context.WithCancel(n.ctx)
	defer cancel()
	if err := n.await(ctx, future); err != nil {
		return err
	}
	opened, ok := future.Response().(fsm.Opened)
	if !ok {
		return fmt.Errorf("the state machine answered %v", future.Response())
	}
	n.lines.end(n.notLeader()) // those of an earlier term
	n.reign.Store(&reign{term: opened.Term, base: opened.Now, anchor: n.cfg.Clock.Monotonic()})
	n.lines.begin()
	n.cfg.Logger.Info("leading", "term", opened.Term)
	signal(n.turned)
	signal(n.reads.wake)
	return nil
}

// tickLoop writes the clock down while leases run and nothing else is written.
func (n *Node) tickLoop() {
	ticker := time.NewTicker(n.cfg.Tuning.Tick)
	defer ticker.Stop()
	last := uint64(0)
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-ticker.C:
		}
		entries := n.entries.Load()
		if now, latestEnd := n.cfg.FSM.Clock(); n.Leads() && entries == last && now < latestEnd {
			ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Tuning.Tick)
			if err := n.Tick(ctx); err != nil {
				n.cfg.Logger.Debug("tick", "error", err)
			}
			cancel()
			entries = n.entries.Load()
		}
		last = entries
	}
}
