package fsm

import (
	"errors"

	"github.com/leasenode/leasenode/lease"
)

// The parts of a state file, for Overwrite.
const (
	Records   = recordsBucket
	Lifecycle = "lifecycle"
)

// Overwrite puts value in the place of what bucket has for key, nil for nothing.
func (f *FSM) Overwrite(name, key string, value []byte) error {
	if err := f.change(f.commitLocked); err != nil {
		return err
	}
	tx, err := f.live.db.Begin(true)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if value == nil {
		return errors.Join(bucket(tx, name).Delete([]byte(key)), tx.Commit())
	}
	return errors.Join(bucket(tx, name).Put([]byte(key), value), tx.Commit())
}

// AlterRecord returns the value of a record after alter has changed it.
func AlterRecord(key string, value []byte, alter func(*lease.Record)) ([]byte, error) {
	s, err := decodeRecord(key, string(value))
	if err != nil {
		return nil, err
	}
	alter(&s.record)
	return appendRecord(nil, s), nil
}
