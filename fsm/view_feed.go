package fsm

import (
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
	"go.etcd.io/bbolt"
)

// feedState is the state as the feed looks at it.
type feedState struct{ fsm *FSM }

var _ feed.State = feedState{}

// Leases implements [feed.State]. It holds a read transaction, and no more than one
// record at a time.
func (s feedState) Leases(yield func(key string, end lease.Instant)) (index uint64, now lease.Instant, err error) {
	err = s.fsm.read(func(tx *bbolt.Tx, m meta) error {
		index, now = m.index, m.now
		cursor := bucket(tx, recordsBucket).Cursor()
		for key, value := cursor.First(); key != nil; key, value = cursor.Next() {
			record := lease.Record{Key: string(key)}
			r := &reader{in: string(value[:min(len(value), maxNumbersBytes)])}
			if r.numbers(&record); r.bad != nil {
				return corruptRecord(record.Key, r.bad)
			}
			if !record.OverAt(now) {
				yield(record.Key, record.LeaseUntil)
			}
		}
		return nil
	})
	return index, now, err
}

// Records implements [feed.State].
func (s feedState) Records(keys []string) (records []lease.Record, index uint64, err error) {
	records = make([]lease.Record, len(keys))
	m, err := s.fsm.lookUp(keys, func(i int, value []byte) error {
		records[i].Key = keys[i]
		if value == nil {
			return nil
		}
		return decodeReadable(&records[i], string(value))
	})
	return records, m.index, err
}
