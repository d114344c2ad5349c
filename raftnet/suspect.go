package raftnet

import (
	"context"
	"errors"
	"io"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// prober has this node stand for election at once when the leader's process is gone, in
// place of waiting for raft's timeout. A process that ends closes its connections and its
// port; a slow network, a busy or a stopped process do neither.
type prober struct {
	node       *Node
	neighbours Neighbours
	// nudged gets a signal when a peer's question has made this node see the same.
	nudged chan struct{}

	// stoodAt is when this node stood last; written by loop.
	stoodAt time.Time
}

const (
	// refusals, refusalGap apart, make a suspicion: one could be a port that is being
	// opened. A reset is neither; the dial is repeated, resets times.
	refusals   = 2
	refusalGap = 2 * time.Millisecond
	resets     = 10
	// askTimeout bounds a question; a node that is asked looks for less than that. Once a
	// majority agrees, the rest has askGrace.
	askTimeout  = 150 * time.Millisecond
	lookTimeout = 100 * time.Millisecond
	askGrace    = 20 * time.Millisecond
	// Others may see it a little later: they are asked again, askAgain apart, for denyAfter.
	askAgain  = 5 * time.Millisecond
	denyAfter = 100 * time.Millisecond
	// lookAgain is when a leader that is not connected, and was not found gone, is looked
	// at again.
	lookAgain = 500 * time.Millisecond
	// standApart is how long at least lies between two times that this node stands.
	standApart = 500 * time.Millisecond
	// Who has the n-th best log waits n times as long as this, or rankWrites slow writes:
	// an election is a few writes one after the other.
	rankWait   = 100 * time.Millisecond
	rankWrites = 10
	// resultPoll is how often who has stood looks what came of it.
	resultPoll = 2 * time.Millisecond
)

func newProber(n *Node, neighbours Neighbours) *prober {
	p := &prober{node: n, neighbours: neighbours, nudged: make(chan struct{}, 1)}
	neighbours.Answer(p.testify)
	return p
}

func (p *prober) loop() {
	var again <-chan time.Time
	for {
		select {
		case <-p.node.ctx.Done():
			p.neighbours.Answer(nil)
			return
		case <-p.neighbours.Lost():
		case <-p.nudged:
		case <-again:
		}
		again = nil
		if p.investigate(p.node.ctx) == tryAgain {
			again = time.After(lookAgain)
		}
	}
}

// nextStep is what follows an investigation.
type nextStep uint8

const (
	rest nextStep = iota
	tryAgain
)

// investigate finds out whether the leader is gone, and if so sees to it that this node,
// or one with a better log, stands in its place.
func (p *prober) investigate(ctx context.Context) nextStep {
	s := p.node.gate.noted().leader
	if p.forbidden(s) != "" {
		return rest
	}
	switch p.look(ctx, s) {
	case Alive:
		p.tell(s, probeAlive, "")
		return tryAgain
	case Gone:
	default:
		p.tell(s, probeUnclear, "")
		return tryAgain
	}
	p.tell(s, probeSuspected, "")
	for waited := false; ; waited = true {
		rank, agreed := p.hear(ctx, s)
		if !agreed {
			p.tell(s, probeDenied, "")
			return tryAgain
		}
		if rank == 0 || waited {
			return p.stand(ctx, s)
		}
		sleepFor(ctx, time.Duration(rank)*max(rankWait, rankWrites*p.node.log.slow()))
		if reason := p.forbidden(s); reason != "" {
			p.tell(s, probeStoodDown, reason)
			return rest
		}
	}
}

// stand hands raft the order and waits for what comes of it.
func (p *prober) stand(ctx context.Context, s reigning) nextStep {
	if reason := p.node.gate.offer(p.node.header(), func() string { return p.forbidden(s) }); reason != "" {
		p.tell(s, probeStoodDown, reason)
		return tryAgain
	}
	p.stoodAt = time.Now()
	deadline := time.Now().Add(p.node.cfg.Tuning.Heartbeat)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		if p.node.raft.State() == raft.Leader {
			p.tell(s, probeWon, "")
			return rest
		}
		if p.node.gate.noted().leader.Term > s.Term {
			break
		}
		sleepFor(ctx, resultPoll)
	}
	p.tell(s, probeLost, "")
	return rest
}

// forbidden returns why this node must not stand in the place of s, "" if it may. It is
// asked last by the gate, right before raft is told. A node stands once in a term at most:
// raft begins a new one by it.
func (p *prober) forbidden(s reigning) string {
	n := p.node
	noted := n.gate.noted()
	switch {
	case s.ID == "" || noted.leader != s || n.raft.CurrentTerm() != s.Term || n.Leader() != s.ID:
		return "it leads no longer, or a vote was given in a newer term"
	case n.raft.State() != raft.Follower:
		return "this node is not a follower"
	case !n.votes():
		return "this node has no vote"
	case n.raft.CommitIndex() < noted.members:
		return "the members are being changed"
	case p.neighbours.Connected(s.ID):
		return "it is connected again"
	case !p.stoodAt.IsZero() && time.Since(p.stoodAt) < standApart:
		return "this node has just stood"
	case n.cfg.Abstain():
		return "this node cannot write its log now"
	default:
		return ""
	}
}

// look dials s: gone is who refuses twice, and a process that answers and does not lead.
func (p *prober) look(ctx context.Context, s reigning) Verdict {
	refused, broken := 0, 0
	for refused < refusals && broken < resets {
		if refused+broken > 0 {
			sleepFor(ctx, refusalGap)
		}
		finding, err := p.ask(ctx, s.ID, s, lookTimeout)
		switch {
		case err == nil:
			return finding.Verdict
		case errors.Is(err, syscall.ECONNREFUSED):
			refused++
		case errors.Is(err, io.EOF), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
			refused = 0
			broken++
		default:
			return Unclear
		}
	}
	if refused == refusals {
		return Gone
	}
	return Unclear
}

func (p *prober) ask(ctx context.Context, id string, s reigning, timeout time.Duration) (Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return p.neighbours.Ask(ctx, id, Question{Leader: s.ID, Term: s.Term})
}

func sleepFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
