package fsm

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"sync"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

// The format of a snapshot, for ever:
//
//	snapshot = magic version frame... sum
//	frame    = kind length payload
//
// magic is 8 bytes, version a uvarint, kind a byte, length a uvarint, and sum the
// SHA-256 of everything before it, with nothing after it. Frames come in the order
// of their kinds:
//
//	1 meta       the meta value; the first frame
//	2 record     key, after its length, and the record's value; ascending by key
//	3 lifecycle  log index as 8 bytes, and the references; ascending
//	4 renewals   the same
//	5 end        how many frames there were of kinds 2, 3 and 4, as uvarints

const (
	snapshotMagic   = "LEASENOD"
	snapshotVersion = 1
)

const (
	frameMeta      = 1
	frameRecord    = 2
	frameLifecycle = 3
	frameRenewals  = 4
	frameEnd       = 5
)

// maxFrameBytes is how long a payload may be: longer than an index's value of the
// longest entry and a record with the longest history.
const maxFrameBytes = 2 << 20

// Snapshot returns the state as it is now, to be persisted while entries go on
// being applied. The file grows as long as the snapshot is not released.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.failure(); err != nil {
		return nil, err
	}
	s, tx, err := f.begin()
	if err != nil {
		return nil, fmt.Errorf("beginning a snapshot: %w", err)
	}
	return &snapshot{tx: tx, done: func() { f.leave(s) }}, nil
}

// snapshot implements raft.FSMSnapshot.
type snapshot struct {
	tx   *bbolt.Tx
	done func()
	once sync.Once
}

// Persist writes the snapshot to sink and closes it, or cancels it on an error.
func (s *snapshot) Persist(sink raft.SnapshotSink) error {
	if err := writeSnapshot(sink, s.tx); err != nil {
		return errors.Join(fmt.Errorf("writing a snapshot: %w", err), sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return fmt.Errorf("closing a snapshot: %w", err)
	}
	return nil
}

// Release lets go of the state. It is idempotent, and must not run at once with
// Persist.
func (s *snapshot) Release() {
	s.once.Do(func() {
		_ = s.tx.Rollback() // fails only if it was ended before
		s.done()
	})
}

// writeSnapshot streams what tx sees.
func writeSnapshot(to io.Writer, tx *bbolt.Tx) error {
	m, err := readMeta(tx)
	if err != nil {
		return err
	}
	w := newFrameWriter(to)
	w.write([]byte(snapshotMagic))
	w.write(binary.AppendUvarint(nil, snapshotVersion))
	w.frame(frameMeta, appendMeta(nil, m))
	var counts []byte
	for _, part := range []struct {
		kind   byte
		bucket string
		prefix func(b, key []byte) []byte
	}{
		{frameRecord, recordsBucket, func(b, key []byte) []byte { return appendText(b, string(key)) }},
		{frameLifecycle, indexBucket(lifecycle), func(b, key []byte) []byte { return append(b, key...) }},
		{frameRenewals, indexBucket(renewals), func(b, key []byte) []byte { return append(b, key...) }},
	} {
		var n uint64
		cursor := bucket(tx, part.bucket).Cursor()
		for key, value := cursor.First(); key != nil && w.err == nil; key, value = cursor.Next() {
			w.frame(part.kind, append(part.prefix(w.payload[:0], key), value...))
			n++
		}
		counts = binary.AppendUvarint(counts, n)
	}
	w.frame(frameEnd, counts)
	return w.finish()
}

// frameWriter writes frames and sums what it writes. The first error sticks.
type frameWriter struct {
	to      io.Writer
	out     *bufio.Writer // to both to and sum
	sum     hash.Hash
	payload []byte // memory for the next payload
	err     error
}

func newFrameWriter(to io.Writer) *frameWriter {
	sum := sha256.New()
	return &frameWriter{to: to, out: bufio.NewWriterSize(io.MultiWriter(to, sum), 64<<10), sum: sum}
}

func (w *frameWriter) write(b []byte) {
	if w.err == nil {
		_, w.err = w.out.Write(b)
	}
}

func (w *frameWriter) frame(kind byte, payload []byte) {
	w.write(binary.AppendUvarint([]byte{kind}, uint64(len(payload))))
	w.write(payload)
	w.payload = payload
}

func (w *frameWriter) finish() error {
	if w.err == nil {
		w.err = w.out.Flush()
	}
	if w.err == nil {
		_, w.err = w.to.Write(w.sum.Sum(nil))
	}
	return w.err
}
