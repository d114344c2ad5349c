package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// LogFile is the file in a data directory that has the log and the vote.
const LogFile = "raft.db"

// The buckets of the file: the head under one key, and the entries under their
// indexes as 8 bytes, big-endian. The head comes first, so that it is known when the
// entries are read.
const (
	headBucket = "head"
	headKey    = "head"
	logBucket  = "log"
)

// boltMedium is the medium on a bbolt file.
type boltMedium struct{ db *bbolt.DB }

// openBolt opens the file, which has been verified.
func openBolt(path string) (*boltMedium, error) {
	var db *bbolt.DB
	_, err := protect(path, func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout: time.Second,
			// The list of free pages grows with the file, and is found again at start.
			NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
		})
		return err
	})
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, &inUseError{path}
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &boltMedium{db}, nil
}

// inUseError says that another process has the file open.
type inUseError struct{ path string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("%s is in use by another process: stop that first", e.path)
}

// buildBolt makes the file with an empty log, and then what fill writes.
func buildBolt(path string, fill filler) error {
	m, err := openBolt(path)
	if err != nil {
		return err
	}
	err = m.db.Update(func(tx *bbolt.Tx) error {
		_, err1 := tx.CreateBucket([]byte(headBucket))
		_, err2 := tx.CreateBucket([]byte(logBucket))
		return errors.Join(err1, err2)
	})
	if err == nil {
		err = m.Write(Change{Head: (&head{}).encode()})
	}
	if err == nil {
		err = fill(m.Write)
	}
	return errors.Join(err, m.Close())
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func entryKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

// Write does c in one bbolt transaction: two fsyncs.
func (m *boltMedium) Write(c Change) error {
	tx, err := m.db.Begin(true)
	if err != nil {
		return fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	entries := tx.Bucket([]byte(logBucket))
	if c.Delete.First > 0 {
		for i := c.Delete.First; i <= c.Delete.Last; i++ {
			if err := entries.Delete(entryKey(i)); err != nil {
				return fmt.Errorf("delete entry %d: %w", i, err)
			}
		}
	}
	for _, e := range c.Put {
		if err := entries.Put(entryKey(e.Index), e.Value); err != nil {
			return fmt.Errorf("write entry %d: %w", e.Index, err)
		}
	}
	if err := tx.Bucket([]byte(headBucket)).Put([]byte(headKey), sealHead(uint64(tx.ID()), c.Head)); err != nil {
		return fmt.Errorf("write the head: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

func (m *boltMedium) Read(index uint64) ([]byte, error) {
	tx, err := m.db.Begin(false)
	if err != nil {
		return nil, fmt.Errorf("begin a transaction: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // fails only when it was ended before
	return bytes.Clone(tx.Bucket([]byte(logBucket)).Get(entryKey(index))), nil
}

func (m *boltMedium) Close() error { return m.db.Close() }
