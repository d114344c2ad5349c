package raftnet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/lease"
)

// readers are the reads that wait for a confirmation.
type readers struct {
	// wake gets a signal, never more than one pending, when a reader comes or the
	// reign changes.
	wake chan struct{}

	mu      sync.Mutex
	waiting []chan error
}

func newReaders() *readers { return &readers{wake: make(chan struct{}, 1)} }

func (rs *readers) add() <-chan error {
	done := make(chan error, 1)
	rs.mu.Lock()
	rs.waiting = append(rs.waiting, done)
	rs.mu.Unlock()
	signal(rs.wake)
	return done
}

func (rs *readers) take() []chan error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	taken := rs.waiting
	rs.waiting = nil
	return taken
}

// Confirm proves that this node led after Confirm was called: a majority of the
// voters has answered, in the term that this node has opened, a request that was sent
// after. Whatever was acknowledged before the call is then in the state machine here,
// so a read of it afterwards is linearizable. If there is no proof within ctx, or this
// node does not lead, the error is [lease.ErrUnavailable].
//
// One round of messages serves all that wait when it begins.
func (n *Node) Confirm(ctx context.Context) error {
	if n.raft.State() != raft.Leader {
		return n.notLeader()
	}
	done := n.reads.add()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: leadership was not confirmed in time: %w", lease.ErrUnavailable, context.Cause(ctx))
	case <-n.ctx.Done():
		return fmt.Errorf("this node is stopping: %w", lease.ErrUnavailable)
	}
}

// recheck is how often a round that gets no answers looks whether it still can.
const recheck = 50 * time.Millisecond

// confirmLoop runs one round after another while there are readers.
func (n *Node) confirmLoop() {
	prompt := make(chan struct{}, 1)
	n.joined.Go(func() { n.promptLoop(prompt) })
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.reads.wake:
		}
		taken := n.reads.take()
		if len(taken) == 0 {
			continue
		}
		err := n.runRound(prompt)
		for _, done := range taken {
			done <- err
		}
		signal(n.reads.wake) // for those who came meanwhile
	}
}

// runRound returns nil when a majority has answered what was sent after it began.
func (n *Node) runRound(prompt chan struct{}) error {
	timer := time.NewTicker(recheck)
	defer timer.Stop()
	var asked round
	for {
		if n.raft.State() != raft.Leader {
			return n.notLeader()
		}
		r := n.current()
		switch {
		case r == nil: // leadLoop opens the term and wakes this up
			signal(n.reopen)
		case r.term != asked.term: // the term that was asked in has passed: begin again
			asked = round{term: r.term, after: n.witness.sent.Load()}
			signal(prompt)
			continue
		case n.witness.confirmed(asked, raft.ServerID(n.cfg.ID), n.voters()):
			n.cfg.Metrics.confirmed()
			return nil
		}
		select {
		case <-n.ctx.Done():
			return n.notLeader()
		case <-n.witness.answered:
		case <-n.reads.wake:
		case <-timer.C:
		}
	}
}

func (n *Node) voters() []raft.ServerID {
	var voters []raft.ServerID
	for _, m := range n.Members() {
		if m.Voter {
			voters = append(voters, raft.ServerID(m.ID))
		}
	}
	return voters
}

// promptLoop has raft send its heartbeats at once. VerifyLeader does that; what it
// says is not used. There is never more than one, since raft's heartbeats wait for
// room to answer them.
func (n *Node) promptLoop(prompt <-chan struct{}) {
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-prompt:
		}
		if len(n.Members()) > 1 {
			_ = n.await(n.ctx, n.raft.VerifyLeader())
		}
	}
}
