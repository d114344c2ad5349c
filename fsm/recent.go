package fsm

import (
	"slices"
	"sync"

	"go.etcd.io/bbolt"
)

// recent is what readers see of what has been applied: what is not in the state file
// yet, and what is known of the state without reading it.
type recent struct {
	mu sync.RWMutex
	// meta is of the last entry applied.
	meta meta
	// marks are the digests that are kept, and are changed in place.
	marks marks
	// values are the records that the open overlay has changed.
	values map[string][]byte
}

// publish adds a batch.
func (r *recent) publish(m meta, b batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meta = m
	for _, d := range b.digests {
		r.marks.add(d)
	}
	for _, it := range b.changed {
		r.values[it.key] = it.value
	}
}

// committed says that the state file has everything.
func (r *recent) committed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.values = make(map[string][]byte, len(r.values))
}

// replaced says that the state is that of m, whole in another state file, which use
// puts in the place of the one before.
func (r *recent) replaced(m meta, use func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.meta, r.marks, r.values = m, marks{m.digest()}, map[string][]byte{}
	use()
}

func (r *recent) clock() meta {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.meta
}

func (r *recent) digests() []Digest {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.marks)
}

// lookUp calls found with the value of each of keys, nil for one that was never granted,
// and returns the meta of the one state that all of them are of. A value is found's only
// while it runs.
func (f *FSM) lookUp(keys []string, found func(i int, value []byte) error) (meta, error) {
	f.recent.mu.RLock()
	s, err := f.use()
	if err != nil {
		f.recent.mu.RUnlock()
		return meta{}, err
	}
	defer f.leave(s)
	m, values := f.recent.meta, make([][]byte, len(keys))
	var missing bool
	for i, key := range keys {
		values[i] = f.recent.values[key]
		missing = missing || values[i] == nil
	}
	var tx *bbolt.Tx
	if missing {
		// Begun with the lock held: what is not among the values is in the state file as
		// it is now.
		tx, err = s.db.Begin(false)
	}
	f.recent.mu.RUnlock()
	if err != nil {
		return meta{}, err
	}
	if tx != nil {
		defer func() { _ = tx.Rollback() }() // fails only if it was ended before
	}
	for i, key := range keys {
		if values[i] == nil {
			values[i] = bucket(tx, recordsBucket).Get([]byte(key))
		}
		if err := found(i, values[i]); err != nil {
			return meta{}, err
		}
	}
	return m, nil
}
