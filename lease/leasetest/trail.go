package leasetest

import (
	"slices"

	"github.com/leasenode/leasenode/lease"
)

// How much history is kept. Of a key: the latest grants, each with its releases
// and forgets, and the latest renewals of those grants. Of all keys together: the
// latest operations.
const (
	KeptGrants   = 16
	KeptRenewals = 8
	maxLogged    = 10_000
)

// logged is an entry and what of it is nobody's business.
type logged struct {
	lease.Entry
	number    uint64 // of all entries of the store, from 1
	requestID string // of an acquire
}

// trail is the history of one key, in order. Its methods never change it in place.
type trail []logged

// with returns the trail with one more entry, trimmed: the oldest renewal leaves
// first, and the oldest grant leaves together with all of its epoch.
func (t trail) with(e logged) trail {
	t = append(slices.Clone(t), e)
	if t.count(lease.OpRenew) > KeptRenewals {
		oldest := slices.IndexFunc(t, func(e logged) bool { return e.Op == lease.OpRenew })
		t = slices.Delete(t, oldest, oldest+1)
	}
	if t.count(lease.OpAcquire) > KeptGrants {
		oldest := t[0].Epoch
		t = slices.DeleteFunc(t, func(e logged) bool { return e.Epoch == oldest })
	}
	return t
}

func (t trail) count(op lease.Op) int {
	n := 0
	for _, e := range t {
		if e.Op == op {
			n++
		}
	}
	return n
}

// remembers reports whether a grant in the trail was made by this attempt.
func (t trail) remembers(owner, requestID string) bool {
	return requestID != "" && slices.ContainsFunc(t, func(e logged) bool {
		return e.Op == lease.OpAcquire && e.Owner == owner && e.requestID == requestID
	})
}

// logLocked adds a granted operation to the history of all keys.
func (m *Memory) logLocked(s step, epoch uint64, mutation lease.Mutation) logged {
	m.entries++
	e := logged{number: m.entries, requestID: mutation.RequestID, Entry: lease.Entry{
		Index: m.index,
		Op:    mutation.Op,
		Key:   mutation.Key,
		Owner: mutation.Owner,
		Epoch: epoch,
		At:    s.now,
		Wall:  s.wall,
	}}
	m.log = append(m.log, e)
	if len(m.log) > maxLogged {
		m.log = m.log[len(m.log)-maxLogged:]
	}
	return e
}
