package model

import "github.com/leasenode/leasenode/jepsen-like/history"

// rules judge one step. They are fixed for one check of one key.
type rules struct {
	evidence *evidence
	// remembered is how many grants of a key are remembered, at least.
	remembered int
	// lookahead has a step refused when what is shown elsewhere makes the rest fail.
	lookahead bool
}

// step returns what in makes of s, and false if in cannot happen there.
func (r *rules) step(s state, in *input) (state, bool) {
	switch in.part {
	case ending:
		s.ended = true
		return s, true
	case possible:
		if s.ended {
			return s, true
		}
		return r.possible(s, in)
	}
	if instantKnown(in.op) {
		if r.lookahead && s.decided < in.rank {
			return s, false
		}
		s.decided++
	}
	next, ok := r.answered(s, in)
	if !ok || next.epoch != in.op.Record.Epoch || next.floor != in.op.Record.ForgottenAtEpoch || next.owner != in.op.Record.Owner {
		return s, false
	}
	next.shown++
	if alive(in.op) {
		next.alive++
	}
	return next, true
}

func (r *rules) answered(s state, in *input) (state, bool) {
	switch in.op.Outcome {
	case history.Held:
		return r.held(s, in)
	case history.Lost:
		return r.lost(s, in)
	}
	if in.op.Kind == history.Get {
		return r.read(s, in)
	}
	s, ok := s.decide(in.now, 0)
	if !ok {
		return s, false
	}
	switch in.op.Kind {
	case history.Acquire:
		return r.acquired(s, in)
	case history.Renew:
		return r.renewed(s, in)
	case history.Release:
		return r.released(s, in)
	default:
		return r.forgotten(s, in)
	}
}

// acquired is an acquire that was granted, now or by an earlier try.
func (r *rules) acquired(s state, in *input) (state, bool) {
	if !in.op.Changed {
		if !s.isCurrent(in.op.Owner, in.id) || s.over || in.now > s.until {
			return s, false
		}
		s.from = max(s.from, in.now)
		s, ok := s.ends(in.until)
		left := s.from - in.now
		return s, ok && (in.remaining == min(left, in.ttl) || in.remaining == max(0, min(left-1, in.ttl)))
	}
	if !r.mayGrant(s, in.now) || !in.ownID && s.remembers(in.op.Owner, in.id, r.remembered) {
		return s, false
	}
	s = s.granted(in.op.Owner, in.id)
	s.from, s.until = in.now+in.ttl, in.now+in.ttl
	return s, in.until == s.until && in.remaining == in.ttl
}

// mayGrant reports whether the next epoch can be granted at now.
func (r *rules) mayGrant(s state, now int64) bool {
	if r.lookahead && s.shown < r.evidence.shownOf(s.epoch) {
		return false
	}
	return s.epoch == 0 || s.over || now >= s.from
}

func (r *rules) renewed(s state, in *input) (state, bool) {
	end := in.now + in.ttl
	if !mine(s, in) || s.over || in.now > s.until || in.until < end || in.remaining != in.ttl {
		return s, false
	}
	s.from = max(s.from, in.now)
	if in.op.Changed {
		if s.from > end || in.until != end {
			return s, false
		}
		s.from, s.until = end, end
		return s, true
	}
	return s.ends(in.until)
}

func (r *rules) released(s state, in *input) (state, bool) {
	switch {
	case !mine(s, in) || in.remaining != 0:
		return s, false
	case in.op.Changed:
		if s.over || in.now > s.until || in.until != in.now || r.lookahead && s.alive < r.evidence.aliveOf(s.epoch) {
			return s, false
		}
		s.from, s.until, s.over = in.now, in.now, true
		return s, true
	default:
		s, ok := s.ends(in.until)
		if !ok || !s.over && in.now < s.from {
			return s, false
		}
		s.over = true
		return s, true
	}
}

func (r *rules) forgotten(s state, in *input) (state, bool) {
	if !mine(s, in) || s.over || in.now > s.until || in.op.Changed != (s.floor < s.epoch) {
		return s, false
	}
	s.floor = s.epoch
	s.from = max(s.from, in.now)
	s, ok := s.ends(in.until)
	left := s.from - in.now
	return s, ok && (in.remaining == left || in.remaining == max(0, left-1))
}

// read is a linearizable read, described as of a clock that is not behind the log's.
func (r *rules) read(s state, in *input) (state, bool) {
	if in.now < s.now {
		return s, false
	}
	s, ok := s.settle(in.now).ends(in.until)
	if !ok {
		return s, false
	}
	if in.remaining == 0 {
		return s.overBy(in.now)
	}
	left := s.from - in.now
	return s, !s.over && (in.remaining == left || in.remaining == left+1)
}

// overBy takes note that the lease is over, at an instant not after now.
func (s state) overBy(now int64) (state, bool) {
	if s.epoch == 0 {
		return s, true
	}
	if now < s.from && !s.over {
		return s, false
	}
	s.over = true
	s.now = max(s.now, s.from)
	return s, true
}

func (r *rules) held(s state, in *input) (state, bool) {
	if s.over || s.epoch == 0 || in.remaining < 1 || !in.ownID && s.remembers(in.op.Owner, in.id, r.remembered) {
		return s, false
	}
	return s.shownAlive(in)
}

// shownAlive is a refusal that tells the record and how long it has to go, rounded up,
// and with that the clock within a millisecond.
func (s state) shownAlive(in *input) (state, bool) {
	s, ok := s.decide(in.until-in.remaining, 1)
	if !ok {
		return s, false
	}
	return s.ends(in.until)
}

func (r *rules) lost(s state, in *input) (state, bool) {
	if in.remaining > 0 {
		if s.over || s.epoch == 0 || !r.lostWhileAlive(s, in) {
			return s, false
		}
		return s.shownAlive(in)
	}
	if !r.lostWhileOver(s, in) {
		return s, false
	}
	s, ok := s.settle(far).ends(in.until)
	if !ok {
		return s, false
	}
	return s.overBy(far)
}

func (r *rules) lostWhileAlive(s state, in *input) bool {
	if in.op.Kind != history.Acquire {
		return !mine(s, in)
	}
	return !s.isCurrent(in.op.Owner, in.id) && s.remembers(in.op.Owner, in.id, 0)
}

func (r *rules) lostWhileOver(s state, in *input) bool {
	switch in.op.Kind {
	case history.Acquire:
		return s.remembers(in.op.Owner, in.id, 0)
	case history.Release:
		return !mine(s, in)
	default:
		return true
	}
}

func mine(s state, in *input) bool {
	return s.epoch > 0 && s.epoch == in.op.Epoch && s.owner == in.op.Owner
}
