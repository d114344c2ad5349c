package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// payload is what record number has, with size bytes or a few more.
func payload(number uint64, size int) []byte {
	b := fmt.Appendf(nil, "record %d of %d bytes ", number, size)
	for i := 0; len(b) < size; i++ {
		b = append(b, byte(number)+byte(i>>8), byte(i))
	}
	return b
}

// written is a log as it should be: the payloads of its records, the first of which has
// the number 1.
type written [][]byte

// create makes a log with one record in files, and opens it.
func create(t *testing.T, files wal.Files) (*wal.Log, written) {
	t.Helper()
	w := written{payload(1, 30)}
	must(t, wal.Create(files, w[0]))
	l, err := w.open(files)
	must(t, err)
	return l, w
}

// add appends a record of size bytes and returns the log after it.
func (w written) add(t *testing.T, l *wal.Log, size int) (written, wal.Position) {
	t.Helper()
	p := payload(uint64(len(w)+1), size)
	at, err := l.Append(p)
	must(t, err)
	got, err := l.Read(at, len(p))
	must(t, err)
	if !bytes.Equal(got, p) {
		t.Errorf("record %d is read as %q", len(w)+1, got)
	}
	return append(w[:len(w):len(w)], p), at
}

// found is what was read of a log.
type found struct {
	view        *wal.View
	first, last uint64
}

// look reads all of a log and returns an error if a record is not what was written.
func (w written) look(files wal.Files) (found, error) {
	var f found
	var wrong error
	view, err := wal.Look(files, func(r wal.Record) error {
		if f.first == 0 {
			f.first = r.Number
		}
		if r.Number <= f.last || r.Number > uint64(len(w)) || !bytes.Equal(r.Payload, w[r.Number-1]) {
			wrong = errors.Join(wrong, fmt.Errorf("after %d comes record %d: %.40q", f.last, r.Number, r.Payload))
		}
		f.last = r.Number
		return nil
	})
	if err != nil {
		return f, err
	}
	f.view = view
	if view.Newest && f.last != uint64(len(w)) {
		wrong = errors.Join(wrong, fmt.Errorf("record %d is said to be the newest of %d", f.last, len(w)))
	}
	return f, wrong
}

// open opens a log that has to be whole, up to the last record.
func (w written) open(files wal.Files) (*wal.Log, error) {
	f, err := w.look(files)
	if err != nil {
		return nil, err
	}
	if f.view.Damage != nil || f.last != uint64(len(w)) {
		return nil, errors.Join(fmt.Errorf("record %d of %d is the last, damage %v", f.last, len(w), f.view.Damage), f.view.Close())
	}
	return wal.Open(f.view)
}
