package fsm

import "github.com/leasenode/leasenode/lease"

// remember returns history with o at its end, trimmed as s says: of more renewals
// than HistoryRenewals the oldest goes, of more grants than HistoryGrants the
// oldest goes with everything of its epoch. History itself is left as it is.
func remember(history []operation, o operation, s Settings) []operation {
	grown := append(make([]operation, 0, len(history)+1), history...)
	grown = append(grown, o)
	if o.op == lease.OpAcquire {
		for countOf(grown, lease.OpAcquire) > s.HistoryGrants {
			grown = grown[indexOf(grown[1:], lease.OpAcquire)+1:]
		}
	}
	if o.op == lease.OpRenew {
		for countOf(grown, lease.OpRenew) > s.HistoryRenewals {
			oldest := indexOf(grown, lease.OpRenew)
			grown = append(grown[:oldest], grown[oldest+1:]...)
		}
	}
	return grown
}

// remembers reports whether s knows a grant that owner asked for with requestID:
// the current one, or one in the history.
func (s *stored) remembers(owner, requestID string) bool {
	for _, o := range s.history {
		if o.op == lease.OpAcquire && o.owner == owner && o.requestID == requestID {
			return true
		}
	}
	return false
}

// at returns the operation that is remembered of position, if there is one.
func (s *stored) at(position Position) (operation, bool) {
	for _, o := range s.history {
		if o.position == position {
			return o, true
		}
	}
	return operation{}, false
}

// entryOf returns o as readers see it.
func (o operation) entryOf(key string) lease.Entry {
	return lease.Entry{Index: o.position.Index, Op: o.op, Key: key, Owner: o.owner, Epoch: o.epoch, At: o.at, Wall: wallTime(o.wall)}
}

func countOf(history []operation, op lease.Op) uint64 {
	var n uint64
	for _, o := range history {
		if o.op == op {
			n++
		}
	}
	return n
}

// indexOf returns the index of the first op in history, or -1.
func indexOf(history []operation, op lease.Op) int {
	for i, o := range history {
		if o.op == op {
			return i
		}
	}
	return -1
}
