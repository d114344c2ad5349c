package raftnet

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// gate is the transport as raft gets it: a witness through which also what comes in
// passes. It notes who leads, and can hand raft a message of this node's own.
type gate struct {
	*witness
	out    chan raft.RPC
	offers chan offer

	stop    chan struct{}
	closing sync.Once
	joined  sync.WaitGroup

	mu   sync.Mutex
	seen seen
}

// seen is what came in.
type seen struct {
	leader reigning
	// members is the index of the latest entry that changes them.
	members uint64
}

// reigning is a node that leads, or has led, a term.
type reigning struct {
	ID   string
	Term uint64
}

// offer asks for a TimeoutNow to be handed to raft.
type offer struct {
	from raft.RPCHeader
	// forbidden returns why it must not be, "" if it may.
	forbidden func() string
	result    chan string // has room for one
}

const (
	// handInWait bounds how long raft may be busy: what was true before is not known to be
	// true after.
	handInWait = 50 * time.Millisecond
	// handInTries bounds how often what came in meanwhile goes first.
	handInTries = 10
)

// newGate begins to let messages in. members is the index of the latest entry that may
// change the members and may not be committed.
func newGate(w *witness, members uint64) *gate {
	g := &gate{witness: w, out: make(chan raft.RPC), offers: make(chan offer), stop: make(chan struct{}), seen: seen{members: members}}
	g.joined.Go(g.pump)
	return g
}

// Consumer implements raft.Transport.
func (g *gate) Consumer() <-chan raft.RPC { return g.out }

// Close stops what the gate runs and closes the transport. Idempotent.
func (g *gate) Close() error {
	g.closing.Do(func() { close(g.stop) })
	g.joined.Wait()
	return g.witness.Close()
}

// noted returns what has come in.
func (g *gate) noted() seen {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen
}

// offer has raft stand for election at once, without asking first whether it would be
// elected, unless forbidden says why not. It returns "" when raft has been told.
func (g *gate) offer(from raft.RPCHeader, forbidden func() string) string {
	o := offer{from: from, forbidden: forbidden, result: make(chan string, 1)}
	select {
	case g.offers <- o:
		return <-o.result
	case <-g.stop:
		return "this node is stopping"
	}
}

func (g *gate) pump() {
	in := g.witness.Consumer()
	for {
		select {
		case <-g.stop:
			return
		case rpc := <-in:
			g.letIn(rpc)
		case o := <-g.offers:
			o.result <- g.handIn(in, o)
		}
	}
}

func (g *gate) letIn(rpc raft.RPC) {
	g.note(rpc)
	select {
	case g.out <- rpc:
	case <-g.stop:
	}
}

func (g *gate) note(rpc raft.RPC) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch c := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		g.leadsLocked(reigning{ID: string(c.ID), Term: c.Term})
		for _, e := range c.Entries {
			if e.Type == raft.LogConfiguration {
				g.seen.members = max(g.seen.members, e.Index)
			}
		}
	case *raft.InstallSnapshotRequest:
		g.leadsLocked(reigning{ID: string(c.ID), Term: c.Term})
	}
}

func (g *gate) leadsLocked(r reigning) {
	if r.Term >= g.seen.leader.Term {
		g.seen.leader = r
	}
}

// handIn is the one place from which raft is told to stand. raft obeys in any state and
// whatever it has promised, so what forbids it is looked at when raft has done all that
// came in before, requests for a vote above all, and nothing new can come in between.
func (g *gate) handIn(in <-chan raft.RPC, o offer) string {
	timeout := time.NewTimer(handInWait)
	defer timeout.Stop()
	for range handInTries {
		if g.letInWaiting(in) {
			continue
		}
		if reason := g.settle(o.from, timeout.C); reason != "" {
			return reason
		}
		if reason := o.forbidden(); reason != "" {
			return reason
		}
		if g.letInWaiting(in) {
			continue
		}
		now := raft.RPC{Command: &raft.TimeoutNowRequest{RPCHeader: o.from}, RespChan: make(chan raft.RPCResponse, 1)}
		select {
		case g.out <- now:
			return ""
		case <-timeout.C:
			return "raft is busy"
		case <-g.stop:
			return "this node is stopping"
		}
	}
	return "too much comes in"
}

// letInWaiting lets in a message that waits, and reports whether there was one.
func (g *gate) letInWaiting(in <-chan raft.RPC) bool {
	select {
	case rpc := <-in:
		g.letIn(rpc)
		return true
	default:
		return false
	}
}

// settle returns "" when raft has done what came in before: it does one thing after the
// other, so an answer to a message without effect, of term 0, says that.
func (g *gate) settle(from raft.RPCHeader, timeout <-chan time.Time) string {
	answered := make(chan raft.RPCResponse, 1)
	select {
	case g.out <- raft.RPC{Command: &raft.AppendEntriesRequest{RPCHeader: from}, RespChan: answered}:
	case <-timeout:
		return "raft is busy"
	case <-g.stop:
		return "this node is stopping"
	}
	select {
	case <-answered:
		return ""
	case <-timeout:
		return "raft is busy"
	case <-g.stop:
		return "this node is stopping"
	}
}
