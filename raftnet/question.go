package raftnet

import (
	"context"
	"errors"
	"fmt"
)

// Question asks a node whether the leader of a term is gone, as far as it can see. A
// node that is asked about itself says whether it leads.
type Question struct {
	Leader string `json:"leader"`
	Term   uint64 `json:"term"`
}

// Verdict is what a node sees of a leader.
type Verdict string

// The verdicts. What is none of them, as the word of a newer node, is as good as
// [Unclear].
const (
	// Alive: the leader is connected, or answers that it leads.
	Alive Verdict = "alive"
	// Gone: its connections are closed and it refuses new ones, or a process answers in
	// its place that does not lead.
	Gone Verdict = "gone"
	// Unclear: there was no answer, as when the network loses messages.
	Unclear Verdict = "unclear"
)

// Finding is the answer to a [Question].
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// LastTerm and LastIndex are those of the last entry in the log of who answers.
	LastTerm  uint64 `json:"last_term"`
	LastIndex uint64 `json:"last_index"`
	// Stands says that who answers would stand for election itself.
	Stands bool `json:"stands"`
}

// Neighbours is what a node sees of its peers beside raft's messages. [Port] is one; a
// simulation brings its own. All methods are safe for concurrent use.
type Neighbours interface {
	// Connected reports whether node id, in its latest start, has a raft connection to
	// this node.
	Connected(id string) bool
	// Lost gets a signal, never more than one pending, when a node's last one has closed.
	Lost() <-chan struct{}
	// Ask puts a question to node id. A node that is not there refuses the connection,
	// ECONNREFUSED.
	Ask(ctx context.Context, id string, q Question) (Finding, error)
	// Answer has questions that are put to this node answered by f, which returns soon
	// after ctx has ended. Until then, and with nil, the node does not lead and knows
	// nothing.
	Answer(f func(ctx context.Context, q Question) Finding)
}

var _ Neighbours = (*Port)(nil)

// Connected implements [Neighbours].
func (p *Port) Connected(id string) bool { return p.presence.connected(id) }

// Lost implements [Neighbours].
func (p *Port) Lost() <-chan struct{} { return p.presence.lost }

// Ask implements [Neighbours]. The question is part of the hello, and the answer of the
// answering one. A node of an earlier version refuses the purpose.
func (p *Port) Ask(ctx context.Context, id string, q Question) (Finding, error) {
	hello := p.hello(PurposeProbe)
	hello.Question = &q
	conn, answer, err := p.dialWith(ctx, id, hello)
	if err != nil {
		return Finding{}, err
	}
	if err := conn.Close(); err != nil {
		return Finding{}, fmt.Errorf("ask node %q: %w", id, err)
	}
	if answer.Finding == nil {
		return Finding{}, errNoFinding
	}
	return *answer.Finding, nil
}

var errNoFinding = errors.New("the node gave no answer to the question")

// Answer implements [Neighbours].
func (p *Port) Answer(f func(ctx context.Context, q Question) Finding) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.find = f
}

// answerQuestion asks who answers. A node that does not take part in the consensus yet leads
// nothing.
func (p *Port) answerQuestion(q Question) *Finding {
	p.mu.Lock()
	find := p.find
	p.mu.Unlock()
	switch {
	case find != nil:
		finding := find(p.ctx, q)
		return &finding
	case q.Leader == p.cfg.Identity.ID:
		return &Finding{Verdict: Gone}
	default:
		return &Finding{Verdict: Unclear}
	}
}
