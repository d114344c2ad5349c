package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// held is a grant that a holder said it had, by believing in it or by writing with it.
type held struct {
	holder string
	epoch  uint64
}

func (h held) compare(other held) int {
	return cmp.Or(cmp.Compare(h.epoch, other.epoch), cmp.Compare(h.holder, other.holder))
}

// heldByKey returns the grants that holders had of each key, and the first time of each.
func heldByKey(run history.Run) map[string]map[held]time.Duration {
	byKey := map[string]map[held]time.Duration{}
	note := func(key string, h held, at time.Duration) {
		if byKey[key] == nil {
			byKey[key] = map[held]time.Duration{}
		}
		if first, known := byKey[key][h]; !known || at < first {
			byKey[key][h] = at
		}
	}
	for _, b := range run.Beliefs {
		note(b.Key, held{b.Holder, b.Epoch}, b.From)
	}
	for _, w := range run.Writes {
		note(w.Key, held{w.Holder, w.Token}, w.At)
	}
	return byKey
}

// unheld looks for grants that holders had and the history does not, though it reaches
// back to them. It has whole grants, the latest ones: what is older than its first is
// forgotten, if there are as many as are kept.
func (h storedOf) unheld(had map[held]time.Duration) {
	owners := map[uint64]string{}
	var oldest uint64
	for _, e := range h.entries {
		if e.Op != lease.OpAcquire {
			continue
		}
		if owners[e.Epoch] = e.Owner; oldest == 0 || e.Epoch < oldest {
			oldest = e.Epoch
		}
	}
	if len(owners) < h.subject.options.KeptGrants {
		oldest = 0
	}
	for _, g := range slices.SortedFunc(maps.Keys(had), held.compare) {
		if g.epoch < oldest {
			continue
		}
		switch owner, stored := owners[g.epoch]; {
		case !stored:
			h.heldWrongly(had[g], fmt.Sprintf("%q held epoch %d, and the history has no such grant", g.holder, g.epoch))
		case owner != g.holder:
			h.heldWrongly(had[g], fmt.Sprintf("%q held epoch %d, which the history has as a grant to %q", g.holder, g.epoch, owner))
		}
	}
}

func (h storedOf) heldWrongly(at time.Duration, text string) {
	h.violation(Violation{Key: h.key, From: at, Until: at, Text: text})
}
