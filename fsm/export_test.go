package fsm

import (
	"errors"
	"io"
	"strings"

	"github.com/leasenode/leasenode/lease"
	"go.etcd.io/bbolt"
)

// Reencode returns what an accepted log entry encodes to.
func Reencode(data []byte) ([]byte, error) {
	e, err := decodeEntry(data)
	if err != nil {
		return nil, err
	}
	if e.kind == kindOpening {
		return EncodeOpening(e.opening), nil
	}
	bodies := make([][]byte, len(e.mutations))
	for i, m := range e.mutations {
		bodies[i] = EncodeMutation(m)
	}
	return EncodeBatch(e.stamp, bodies), nil
}

// DecodeOpening returns the opening in an entry.
func DecodeOpening(data []byte) (Opening, error) {
	e, err := decodeEntry(data)
	return e.opening, err
}

// DecodeBatch returns the batch in an entry.
func DecodeBatch(data []byte) (Stamp, []lease.Mutation, error) {
	e, err := decodeEntry(data)
	return e.stamp, e.mutations, err
}

// ReencodeRecord returns what an accepted value of a record encodes to.
func ReencodeRecord(key, value string) ([]byte, error) {
	s, err := decodeRecord(key, value)
	if err != nil {
		return nil, err
	}
	return appendRecord(nil, s), nil
}

// StoredValue returns the value of key's record in the state file.
func (f *FSM) StoredValue(key string) (value []byte, err error) {
	s, tx, err := f.begin()
	if err != nil {
		return nil, err
	}
	defer f.leave(s)
	defer tx.Rollback()
	return append(value, bucket(tx, recordsBucket).Get([]byte(key))...), nil
}

// BreakStateFile makes the state file fail whatever is written to it from now on.
func (f *FSM) BreakStateFile() error {
	if err := f.change(f.commitLocked); err != nil {
		return err
	}
	return f.live.db.Close()
}

// BreakCommit makes the next commit of what was applied fail.
func (f *FSM) BreakCommit() error {
	return f.change(func() error {
		o, err := f.overlay()
		if err == nil {
			key := strings.Repeat("k", bbolt.MaxKeySize+1)
			o.items[key] = &item{key: key, value: []byte("v"), changed: true}
		}
		return err
	})
}

// Uncommitted returns how many records are not in the state file yet.
func (f *FSM) Uncommitted() int {
	f.recent.mu.RLock()
	defer f.recent.mu.RUnlock()
	return len(f.recent.values)
}

// Plant puts a key that nothing has granted, as a restore from a backup might
// have, with one grant in its history.
func (f *FSM) Plant(record lease.Record, grantedAt uint64) error {
	if err := f.change(f.commitLocked); err != nil {
		return err
	}
	m := f.recent.clock()
	tx, err := f.live.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	s := &stored{record: record}
	s.history = []operation{{op: lease.OpAcquire, position: Position{Index: grantedAt}, epoch: record.Epoch, owner: record.Owner}}
	value := appendRecord(nil, s)
	hash, _ := recordHash(nil, record.Key, value)
	m.sum.add(hash)
	m.keys++
	if err := errors.Join(bucket(tx, recordsBucket).Put([]byte(record.Key), value), putMeta(tx, m), tx.Commit()); err != nil {
		return err
	}
	f.recent.publish(m, batch{})
	return nil
}

type discard struct{}

func (discard) put(byte, []byte, []byte) error { return nil }

// CheckSnapshot reads a snapshot without loading it.
func CheckSnapshot(r io.Reader) error {
	_, err := readSnapshot(r, discard{})
	return err
}

// WriteOver writes a record over another, as apply does; one with an empty key
// stands for none.
func WriteOver(before, after lease.Record, op lease.Op) error {
	wrap := func(r lease.Record) *stored {
		if r.Key == "" {
			return nil
		}
		return &stored{record: r}
	}
	d := &draft{latest: map[string]*stored{}}
	return d.write(wrap(before), change{op: op, after: wrap(after)})
}
