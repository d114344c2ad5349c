package raftnet

import (
	"context"
	"fmt"
)

// admit decides whether a node that connects is let in.
func (p *Port) admit(h Hello) error {
	p.mu.Lock()
	founded := len(p.table) > 0
	p.mu.Unlock()
	switch {
	case h.Purpose == PurposeWho:
		return nil
	case h.Purpose == PurposeFound:
		return p.judge(h)
	case p.lanes[h.Purpose] == nil && h.Purpose != PurposeProbe:
		return &RefusedError{ID: h.ID, Reason: fmt.Sprintf("the purpose %q is not known here", h.Purpose)}
	case !founded:
		return &RefusedError{ID: h.ID, Reason: "this node's cluster is not founded yet"}
	}
	if h.Starts > p.cfg.Identity.seen(h.ID).Starts {
		if err := p.checkSingle(h); err != nil {
			return err
		}
	}
	return p.judge(h)
}

// checkSingle has a node that connects in a new start checked at its address: if
// another process answers there, the one that connects has a copy of its directory.
// If none answers, there is no second one to be seen.
func (p *Port) checkSingle(h Hello) error {
	ctx, cancel := context.WithTimeout(p.ctx, helloTimeout/3)
	defer cancel()
	conn, answer, err := p.dial(ctx, h.ID, PurposeWho)
	if err != nil {
		return nil
	}
	_ = conn.Close()
	if answer.Boot != h.Boot && answer.Incarnation == h.Incarnation {
		return &RefusedError{ID: h.ID, Reason: "another process answers at its address with the same data directory, or a copy of it: stop one of the two for good"}
	}
	return nil
}

// judge decides whether to talk to the node that said h, and remembers it if so.
func (p *Port) judge(h Hello) error {
	p.mu.Lock()
	table := p.table
	if len(table) == 0 {
		if p.meeting != nil {
			p.meeting.meet(h)
		}
		p.mu.Unlock()
		return nil
	}
	p.mu.Unlock()
	if h.Purpose == PurposeFound && h.Cluster == "" {
		return nil // it is told the table, and decides for itself
	}
	if reason := stranger(h, table, p.cfg.Identity.seen(h.ID)); reason != "" {
		return &RefusedError{ID: h.ID, Reason: reason}
	}
	if err := p.cfg.Identity.see(h.ID, Sighting{Starts: h.Starts, Boot: h.Boot}); err != nil {
		return err
	}
	p.presence.met(h.ID, Sighting{Starts: h.Starts, Boot: h.Boot})
	p.mu.Lock()
	p.peers[h.ID] = h
	p.mu.Unlock()
	return nil
}

// stranger returns why the node that said h is not the one that the table has under
// its name, or an earlier or second life of it; "" if it is the one.
func stranger(h Hello, table Table, seen Sighting) string {
	member, known := table.Member(h.ID)
	switch {
	case h.Cluster != table.ClusterID():
		return fmt.Sprintf("it is of cluster %q, not of %q", h.Cluster, table.ClusterID())
	case !known:
		return "it is not a member of the cluster"
	case h.Incarnation != member.Incarnation:
		return "its data directory is not the one that the cluster knows it by: it was wiped or replaced; put the old one back (this version cannot replace a node for good)"
	case h.Starts < seen.Starts:
		return fmt.Sprintf("a later start of it was met (%d, this is %d): its data directory is an older copy, or another process has the newer one; use the newest directory, and only once", seen.Starts, h.Starts)
	case h.Starts == seen.Starts && h.Boot != seen.Boot:
		return "another process was met with a copy of its data directory: stop one of the two for good"
	default:
		return ""
	}
}
