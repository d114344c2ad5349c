package model

import "github.com/leasenode/leasenode/jepsen-like/history"

// possible lets an operation that nobody was answered take effect here; false if it
// could have none. That it has none at all is what the ending is for.
func (r *rules) possible(s state, in *input) (state, bool) {
	switch in.op.Kind {
	case history.Acquire:
		return r.mayAcquire(s, in)
	case history.Renew:
		return r.mayRenew(s, in)
	case history.Release:
		return r.mayRelease(s, in)
	default:
		return r.mayForget(s, in)
	}
}

func (r *rules) mayAcquire(s state, in *input) (state, bool) {
	if !r.mayGrant(s, far) || !r.evidence.allows(s.epoch+1, in) || !in.ownID && s.remembers(in.op.Owner, in.id, r.remembered) {
		return s, false
	}
	if !s.over {
		s.now = max(s.now, s.from) // whenever it was, the lease before was over
	}
	s = s.granted(in.op.Owner, in.id)
	s.from, s.until = s.now+in.ttl, s.now+in.ttl
	s.open, s.openBy = in.ttl, far
	return s, true
}

func (r *rules) mayRenew(s state, in *input) (state, bool) {
	last := s.latestEnd()
	if !mine(s, in) || s.over || s.now > last {
		return s, false
	}
	s.from = max(s.from, s.now+in.ttl)
	if r.lookahead && !r.evidence.endOf(s.epoch, s.from, s.alive) {
		return s, false
	}
	if s.open >= 0 {
		s.open, s.openBy = max(s.open, in.ttl), max(s.openBy, last)
	} else {
		s.open, s.openBy = in.ttl, last
	}
	s.until = max(s.until, s.from)
	return s, true
}

func (r *rules) mayRelease(s state, in *input) (state, bool) {
	last := s.latestEnd()
	if !mine(s, in) || s.over || s.now > last || r.lookahead && s.alive < r.evidence.aliveOf(s.epoch) {
		return s, false
	}
	s.from, s.until, s.over = s.now, s.now, true
	s.open, s.openBy = 0, last
	return s, true
}

func (r *rules) mayForget(s state, in *input) (state, bool) {
	if !mine(s, in) || s.over || s.now > s.latestEnd() || s.floor == s.epoch {
		return s, false
	}
	s.floor = s.epoch
	return s, true
}
