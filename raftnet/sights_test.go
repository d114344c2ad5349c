package raftnet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet"
)

// sights are what the nodes of a bubble see of each other beside raft's messages, as the
// test has it. Nothing is wrong until it says so.
type sights struct {
	mu      sync.Mutex
	broken  map[link]bool  // no raft connection
	fails   map[link]error // what a dial comes to
	answers map[raft.ServerID]func(context.Context, raftnet.Question) raftnet.Finding
	lost    map[raft.ServerID]chan struct{}
	asked   map[link]int
}

func newSights() *sights {
	return &sights{
		broken: map[link]bool{}, fails: map[link]error{}, lost: map[raft.ServerID]chan struct{}{},
		answers: map[raft.ServerID]func(context.Context, raftnet.Question) raftnet.Finding{}, asked: map[link]int{},
	}
}

// disconnect closes the raft connections of from to to; dialing back fails with err, nil
// for a dial that works.
func (s *sights) disconnect(from, to raft.ServerID, err error) {
	s.disconnectUnnoticed(from, to, err)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.lost[to] <- struct{}{}:
	default:
	}
}

// disconnectUnnoticed is disconnect without a signal.
func (s *sights) disconnectUnnoticed(from, to raft.ServerID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken[link{from, to}] = true
	s.fails[link{to, from}] = err
}

// connect makes up for disconnect.
func (s *sights) connect(from, to raft.ServerID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.broken, link{from, to})
	delete(s.fails, link{to, from})
}

// askedBy returns how many questions id has put to others than about.
func (s *sights) askedBy(id, about raft.ServerID) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l, n := range s.asked {
		if l.from == id && l.to != about {
			count += n
		}
	}
	return count
}

// of returns what node id sees.
func (s *sights) of(id raft.ServerID) raftnet.Neighbours {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost[id] = make(chan struct{}, 1)
	return neighbours{s, id}
}

type neighbours struct {
	*sights
	id raft.ServerID
}

func (n neighbours) Connected(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.broken[link{raft.ServerID(id), n.id}]
}

func (n neighbours) Lost() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost[n.id]
}

var errHole = errors.New("no answer")

func (n neighbours) Ask(ctx context.Context, id string, q raftnet.Question) (raftnet.Finding, error) {
	l := link{n.id, raft.ServerID(id)}
	n.mu.Lock()
	n.asked[l]++
	err, answer := n.fails[l], n.answers[l.to]
	n.mu.Unlock()
	time.Sleep(time.Millisecond)
	switch {
	case errors.Is(err, errHole):
		<-ctx.Done()
		return raftnet.Finding{}, ctx.Err()
	case err != nil:
		return raftnet.Finding{}, fmt.Errorf("dial: %w", err)
	case answer == nil:
		return raftnet.Finding{Verdict: raftnet.Gone}, nil
	default:
		return answer(ctx, q), nil
	}
}

func (n neighbours) Answer(f func(context.Context, raftnet.Question) raftnet.Finding) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.answers[n.id] = f
}

// die has m's process be gone for all others: their connections close, and its port
// refuses them.
func (c *cluster) die(m *member) {
	c.isolate(m)
	for _, o := range c.members {
		if o != m {
			c.sights.disconnect(m.id, o.id, syscall.ECONNREFUSED)
		}
	}
}

// unplug has m not be heard of any more, while nothing tells the others so.
func (c *cluster) unplug(m *member) {
	c.isolate(m)
	for _, o := range c.members {
		c.sights.mu.Lock()
		c.sights.fails[link{o.id, m.id}] = errHole
		c.sights.mu.Unlock()
	}
}
