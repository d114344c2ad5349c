package raftnet

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// hear asks the other voters until a majority of all, this node included, agrees that s
// is gone. rank is how many of those that agree have a better claim to its place.
func (p *prober) hear(ctx context.Context, s reigning) (rank int, agreed bool) {
	for began := time.Now(); ; sleepFor(ctx, askAgain) {
		voters := p.node.voters()
		rank, agree := p.round(ctx, s, voters)
		if agree > len(voters)/2 {
			return rank, true
		}
		if ctx.Err() != nil || time.Since(began) > denyAfter || p.neighbours.Connected(s.ID) {
			return 0, false
		}
	}
}

// claim is how good a node's claim to be the next leader is.
type claim struct {
	id       string
	lastTerm uint64
	last     uint64
}

func (c claim) better(than claim) bool {
	order := cmp.Or(cmp.Compare(than.lastTerm, c.lastTerm), cmp.Compare(than.last, c.last), cmp.Compare(c.id, than.id))
	return order < 0
}

// round asks all other voters once. What has not come askGrace after a majority agreed is
// not waited for: a stopped node would hold the others up.
func (p *prober) round(ctx context.Context, s reigning, voters []raft.ServerID) (rank, agree int) {
	ctx, cancel := context.WithCancel(ctx)
	type answer struct {
		id string
		Finding
	}
	answers := make(chan answer, len(voters))
	var asked sync.WaitGroup
	defer func() { cancel(); asked.Wait() }()
	waiting := 0
	for _, id := range voters {
		if string(id) == p.node.cfg.ID || string(id) == s.ID {
			continue
		}
		waiting++
		asked.Go(func() {
			finding, err := p.ask(ctx, string(id), s, askTimeout)
			if err != nil {
				finding = Finding{Verdict: Unclear}
			}
			answers <- answer{string(id), finding}
		})
	}
	var enough <-chan time.Time
	agree = 1
	own := p.node.claim()
	for ; waiting > 0; waiting-- {
		if agree > len(voters)/2 && enough == nil {
			enough = time.After(askGrace)
		}
		select {
		case a := <-answers:
			if a.Verdict != Gone {
				continue
			}
			agree++
			if a.Stands && (claim{a.id, a.LastTerm, a.LastIndex}).better(own) {
				rank++
			}
		case <-enough:
			return rank, agree
		}
	}
	return rank, agree
}

// testify answers a peer's question.
func (p *prober) testify(ctx context.Context, q Question) Finding {
	n := p.node
	if q.Leader == n.cfg.ID {
		if n.raft.State() == raft.Leader {
			return Finding{Verdict: Alive}
		}
		return Finding{Verdict: Gone}
	}
	verdict := Unclear
	switch {
	case n.raft.CurrentTerm() > q.Term: // the question is of the past
	case p.neighbours.Connected(q.Leader):
		verdict = Alive
	default:
		verdict = p.look(ctx, reigning{ID: q.Leader, Term: q.Term})
	}
	if verdict == Gone {
		signal(p.nudged)
	}
	own := n.claim()
	return Finding{Verdict: verdict, LastTerm: own.lastTerm, LastIndex: own.last, Stands: n.votes() && !n.cfg.Abstain()}
}
