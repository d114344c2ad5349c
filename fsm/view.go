package fsm

import (
	"bytes"
	"fmt"

	"github.com/leasenode/leasenode/lease"
	"go.etcd.io/bbolt"
)

// View is one record as of one state.
type View struct {
	// Record has epoch 0 if the key was never granted.
	Record lease.Record
	// Now is the cluster clock of that state.
	Now lease.Instant
}

// ListQuery asks for a page of records in the order of their keys' bytes. A bound
// of 0 is none.
type ListQuery struct {
	// Prefix selects keys by their bytes; empty for all.
	Prefix string
	// After is the last key that was looked at before, exclusive; empty for none.
	After     string
	Selection lease.Selection
	// Limit is how many records the page may have.
	Limit int
	// MaxBytes is how many bytes the texts of its records may have together, unless
	// the first alone has more.
	MaxBytes int
	// MaxExamined is how many keys may be looked at, selected or not, so that a page
	// with few hits does not hold the state for long.
	MaxExamined int
}

// ListView is a page of records of one state.
type ListView struct {
	Records []lease.Record
	Now     lease.Instant
	// Index is the log index of that state.
	Index uint64
	// Next is the last key that was looked at: After of the next page.
	Next string
	// More says whether there are keys with the prefix after Next. A page may be empty
	// and there be more.
	More bool
}

// read brings what was applied into the state file and runs view in a read transaction.
// The views hold it for a page, never while somebody else is waited for.
func (f *FSM) read(view func(tx *bbolt.Tx, m meta) error) error {
	s, tx, err := f.begin()
	if err != nil {
		return err
	}
	defer f.leave(s)
	defer func() { _ = tx.Rollback() }() // fails only if it was ended before
	m, err := readMeta(tx)
	if err != nil {
		return err
	}
	return view(tx, m)
}

// begin begins a read transaction that sees everything that was applied. The caller has
// to end it, and then to leave the store.
func (f *FSM) begin() (s *store, tx *bbolt.Tx, err error) {
	var failed error
	err = f.change(func() error {
		if err := f.commitLocked(); err != nil {
			return err
		}
		if s, failed = f.use(); failed == nil {
			tx, failed = s.db.Begin(false)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case failed != nil && s != nil:
		f.leave(s)
		return nil, nil, fmt.Errorf("beginning a transaction: %w", failed)
	case failed != nil:
		return nil, nil, failed
	default:
		return s, tx, nil
	}
}

// Get returns the record of key, which may be any text. Errors: [ErrClosed],
// [*CorruptStateError].
func (f *FSM) Get(key string) (View, error) {
	view := View{Record: lease.Record{Key: key}}
	m, err := f.lookUp([]string{key}, func(_ int, value []byte) error {
		if value == nil {
			return nil
		}
		return decodeReadable(&view.Record, string(value))
	})
	view.Now = m.now
	return view, err
}

// List returns a page of records. Errors: [ErrClosed], [*CorruptStateError].
func (f *FSM) List(q ListQuery) (ListView, error) {
	view := ListView{Next: q.After}
	err := f.read(func(tx *bbolt.Tx, m meta) error {
		view.Now, view.Index = m.now, m.index
		return view.fill(bucket(tx, recordsBucket).Cursor(), q)
	})
	return view, err
}

func (v *ListView) fill(cursor *bbolt.Cursor, q ListQuery) error {
	prefix := []byte(q.Prefix)
	key, value := seekAfter(cursor, []byte(max(q.Prefix, q.After)), q.After)
	page := page{limit: q.Limit, bytes: q.MaxBytes, examined: q.MaxExamined}
	var last []byte
	for ; key != nil && bytes.HasPrefix(key, prefix); key, value = cursor.Next() {
		record, size, err := selected(key, value, q.Selection, v.Now)
		if err != nil {
			return err
		}
		if !page.admits(size) {
			v.More = true
			break
		}
		if last = key; size > 0 {
			v.Records = append(v.Records, record)
		}
	}
	if last != nil {
		v.Next = string(last)
	}
	return nil
}

// seekAfter moves cursor to the first key from start on that is not after.
func seekAfter(cursor *bbolt.Cursor, start []byte, after string) (key, value []byte) {
	key, value = cursor.Seek(start)
	if after != "" && string(key) == after {
		return cursor.Next()
	}
	return key, value
}

// selected decodes a record; its size is 0 if the selection leaves it out.
func selected(key, value []byte, selection lease.Selection, now lease.Instant) (lease.Record, int, error) {
	record := lease.Record{Key: string(key)}
	if selection == lease.HeldOnly {
		// Most keys may be free: of those no more is copied than it takes to know.
		r := &reader{in: string(value[:min(len(value), maxNumbersBytes)])}
		r.numbers(&record)
		if r.bad == nil && record.OverAt(now) {
			return lease.Record{}, 0, nil
		}
	}
	if err := decodeReadable(&record, string(value)); err != nil {
		return lease.Record{}, 0, err
	}
	size := len(record.Key) + len(record.Owner)
	for name, value := range record.Attributes {
		size += len(name) + len(value)
	}
	return record, size, nil
}

// page keeps the bounds of a page; a bound of 0 is none.
type page struct {
	limit, bytes, examined int
	items, size, seen      int
}

// admits reports whether the page has room for one more item of size bytes, and
// takes it in if so. Size 0 is an item that was only looked at.
func (p *page) admits(size int) bool {
	switch {
	case p.limit > 0 && p.items >= p.limit,
		p.examined > 0 && p.seen >= p.examined,
		p.bytes > 0 && p.items > 0 && p.size+size > p.bytes:
		return false
	}
	p.seen++
	if size > 0 {
		p.items++
		p.size += size
	}
	return true
}
