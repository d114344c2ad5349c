package feed

import (
	"strings"

	"github.com/leasenode/leasenode/lease"
	"github.com/tidwall/btree"
)

// ends are the ends of the leases that are not over, in the order of end and key.
// Not safe for concurrent use.
type ends struct{ tree *btree.BTreeG[end] }

type end struct {
	at  lease.Instant
	key string // memory of its own
}

func newEnds() ends {
	return ends{btree.NewBTreeGOptions(func(a, b end) bool {
		return a.at < b.at || a.at == b.at && a.key < b.key
	}, btree.Options{NoLocks: true})}
}

// add takes in the end of a lease that had none here.
func (e ends) add(key string, at lease.Instant) { e.tree.Set(end{at, strings.Clone(key)}) }

// move follows a record from before to after, at now.
func (e ends) move(before, after lease.Record, now lease.Instant) {
	if before.LeaseUntil == after.LeaseUntil && before.Epoch == after.Epoch {
		return
	}
	key := ""
	if before.Epoch > 0 {
		if was, ok := e.tree.Delete(end{before.LeaseUntil, before.Key}); ok {
			key = was.key
		}
	}
	if after.OverAt(now) {
		return
	}
	if key == "" {
		key = strings.Clone(after.Key)
	}
	e.tree.Set(end{after.LeaseUntil, key})
}

// takeOver removes and returns the keys of the first leases that are over at now, as
// most as many as most.
func (e ends) takeOver(now lease.Instant, most int) []string {
	var keys []string
	for len(keys) < most {
		first, ok := e.tree.Min()
		if !ok || first.at > now {
			break
		}
		e.tree.PopMin()
		keys = append(keys, first.key)
	}
	return keys
}
