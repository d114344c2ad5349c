package model

import (
	"fmt"
	"hash/maphash"
	"math"
)

// state is a key between two operations. Times are whole milliseconds, rounded down.
// It is a value: steps make new ones.
type state struct {
	epoch uint64
	owner string
	floor uint64

	// from and until bound the end of the lease.
	from, until int64
	// open, unless negative, says that an unanswered mutation has moved the end, to open
	// after its instant at most; the instant is before the next one that is known, and
	// not after openBy.
	open, openBy int64
	// over says that the lease is known to be over.
	over bool
	// now is a lower bound of the log's clock.
	now int64

	grants *grant // of all epochs, the latest first
	trail  uint64 // a hash of grants

	// decided counts mutations with known instants, shown and alive the answers with the
	// current epoch so far.
	decided, shown, alive int
	ended                 bool
}

// grant is one grant and those before it.
type grant struct {
	epoch     uint64
	owner, id string
	before    *grant
}

const far = math.MaxInt64 / 4

func initial() state { return state{open: -1} }

var seed = maphash.MakeSeed()

func (s state) hash() uint64 {
	s.grants = nil
	return maphash.Comparable(seed, s)
}

func (s state) equal(other state) bool {
	s.grants, other.grants = nil, nil
	return s == other
}

// granted returns s with the next epoch granted.
func (s state) granted(owner, id string) state {
	s.epoch++
	s.owner = owner
	s.grants = &grant{epoch: s.epoch, owner: owner, id: id, before: s.grants}
	s.trail = maphash.Comparable(seed, [2]any{s.trail, [2]string{owner, id}})
	s.shown, s.alive, s.over, s.open = 0, 0, false, -1
	return s
}

// isCurrent reports whether id is of the current grant, which is owner's.
func (s state) isCurrent(owner, id string) bool {
	return id != "" && s.grants != nil && s.grants.owner == owner && s.grants.id == id
}

// remembers reports whether the attempt was granted, the current grant included, among
// the last most grants; 0 is all.
func (s state) remembers(owner, id string, most int) bool {
	if id == "" {
		return false
	}
	for g, n := s.grants, 1; g != nil && (most == 0 || n <= most); g, n = g.before, n+1 {
		if g.owner == owner && g.id == id {
			return true
		}
	}
	return false
}

// latestEnd returns the latest instant at which the lease may end.
func (s state) latestEnd() int64 {
	if s.open < 0 {
		return s.until
	}
	return max(s.until, s.openBy+s.open)
}

// settle takes into account that the log's clock is at most now.
func (s state) settle(now int64) state {
	if s.open >= 0 {
		s.until = max(s.until, min(now, s.openBy)+s.open)
		s.open = -1
	}
	return s
}

// decide moves the log's clock to now, which is known up to slack later; false if it
// would go back.
func (s state) decide(now, slack int64) (state, bool) {
	if now+slack < s.now {
		return s, false
	}
	s = s.settle(now + slack)
	s.now = max(s.now, now)
	return s, true
}

// ends narrows the end of the lease to one instant, if it can be that.
func (s state) ends(at int64) (state, bool) {
	if at < s.from || at > s.until {
		return s, false
	}
	s.from, s.until = at, at
	return s, true
}

func (s state) String() string {
	if s.epoch == 0 {
		return "never granted"
	}
	end := fmt.Sprint(s.from)
	if last := s.latestEnd(); last != s.from {
		end = fmt.Sprintf("%d..%d", s.from, last)
		if last >= far {
			end = fmt.Sprintf("%d or later", s.from)
		}
	}
	text := fmt.Sprintf("epoch %d of %q, ends at %s ms", s.epoch, s.owner, end)
	if s.over {
		text += " (over)"
	}
	if s.floor > 0 {
		text += fmt.Sprintf(", floor %d", s.floor)
	}
	return text + fmt.Sprintf(", clock %d ms or later", s.now)
}
