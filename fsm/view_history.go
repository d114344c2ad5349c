package fsm

import (
	"encoding/binary"
	"fmt"

	"github.com/leasenode/leasenode/lease"
	"go.etcd.io/bbolt"
)

// HistoryQuery asks for a page of history in log order. A bound of 0 is none.
type HistoryQuery struct {
	// Key is the key, or empty for all keys.
	Key string
	// After is the position to go on from, exclusive; zero for the beginning.
	After Position
	// Limit is how many entries the page may have.
	Limit int
	// MaxBytes is how many bytes the texts of its entries may have together, unless
	// the first alone has more.
	MaxBytes int
}

// HistoryView is a page of history of one state.
type HistoryView struct {
	Entries []lease.Entry
	// Next is the position that was looked at last: After of the next page.
	Next Position
	// More says whether there is something to look at after Next. A page may be empty
	// and there be more.
	More bool
}

// maxHistoryExamined is how many operations a page of all keys' history may look
// at: those that their keys have forgotten are many where renewals are.
const maxHistoryExamined = 4096

// History returns a page of history. Errors: [ErrClosed], [*CorruptStateError].
func (f *FSM) History(q HistoryQuery) (HistoryView, error) {
	view := HistoryView{Next: q.After}
	err := f.read(func(tx *bbolt.Tx, _ meta) error {
		if q.Key == "" {
			return view.fillFromAll(tx, q)
		}
		s, err := find(tx, q.Key)
		if err != nil || s == nil {
			return err
		}
		view.fillFromKey(s, q)
		return nil
	})
	return view, err
}

func find(tx *bbolt.Tx, key string) (*stored, error) {
	value := bucket(tx, recordsBucket).Get([]byte(key))
	if value == nil {
		return nil, nil
	}
	return decodeRecord(key, string(value))
}

func (v *HistoryView) fillFromKey(s *stored, q HistoryQuery) {
	page := page{limit: q.Limit, bytes: q.MaxBytes}
	for _, o := range s.history {
		if !q.After.before(o.position) {
			continue
		}
		if !v.add(&page, s, o) {
			return
		}
	}
}

// add takes o into the page and reports true, or says that there is more.
func (v *HistoryView) add(p *page, s *stored, o operation) bool {
	if !p.admits(len(s.record.Key) + len(o.owner)) {
		v.More = true
		return false
	}
	v.Entries = append(v.Entries, o.entryOf(s.record.Key))
	v.Next = o.position
	return true
}

// fillFromAll merges the two indexes and looks up what each key still remembers.
func (v *HistoryView) fillFromAll(tx *bbolt.Tx, q HistoryQuery) error {
	page := page{limit: q.Limit, bytes: q.MaxBytes, examined: maxHistoryExamined}
	found := map[string]*stored{}
	merged, err := newMerge(tx, q.After)
	for err == nil {
		position, key, ok, failed := merged.next()
		if failed != nil || !ok {
			return failed
		}
		if found[key] == nil {
			if found[key], err = find(tx, key); err != nil {
				return err
			}
		}
		if found[key] == nil {
			return &CorruptStateError{Where: fmt.Sprintf("%q", key), Problem: "an operation of a key without a record"}
		}
		o, remembered := found[key].at(position)
		switch {
		case remembered && !v.add(&page, found[key], o):
			return nil
		case !remembered && !page.admits(0):
			v.More = true
			return nil
		}
		v.Next = position
	}
	return err
}

// merge walks both indexes at once, in log order.
type merge struct{ sides [2]side }

// side is one index: a cursor, and what is left of the log entry it stands at.
type side struct {
	cursor *bbolt.Cursor
	key    []byte // nil at the end
	left   []reference
}

// newMerge returns a merge that stands before the first operation after after.
func newMerge(tx *bbolt.Tx, after Position) (*merge, error) {
	m := &merge{}
	for which := range m.sides {
		s := &m.sides[which]
		s.cursor = bucket(tx, indexBucket(which)).Cursor()
		if err := s.load(s.cursor.Seek(indexKey(after.Index))); err != nil {
			return nil, err
		}
		for s.key != nil && !after.before(s.position()) {
			if err := s.step(); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// next returns the next operation; ok is false at the end.
func (m *merge) next() (position Position, key string, ok bool, err error) {
	s := &m.sides[lifecycle]
	if other := &m.sides[renewals]; s.key == nil || other.key != nil && other.position().before(s.position()) {
		s = other
	}
	if s.key == nil {
		return Position{}, "", false, nil
	}
	position, key = s.position(), s.left[0].key
	return position, key, true, s.step()
}

// position is that of the operation at which s stands; it must not be at the end.
func (s *side) position() Position {
	return Position{Index: binary.BigEndian.Uint64(s.key), Ordinal: s.left[0].ordinal}
}

// step moves on by one operation.
func (s *side) step() error {
	if s.left = s.left[1:]; len(s.left) > 0 {
		return nil
	}
	return s.load(s.cursor.Next())
}

// load makes s stand at the first operation of a log entry.
func (s *side) load(key, value []byte) error {
	s.key = key
	if key == nil {
		return nil
	}
	var f *fault
	if s.left, f = decodeReferences(string(value)); f != nil {
		return corruptIndex(key, f)
	}
	return nil
}
