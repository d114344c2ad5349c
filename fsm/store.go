package fsm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
)

// The state file has four buckets: the meta value under its one key; records by
// key; and two indexes of operations, by big-endian log index.
const (
	metaBucket    = "meta"
	metaKey       = "meta"
	recordsBucket = "records"
)

// The two indexes: renewals, and all other operations. Apart, so that renewals
// cannot push grants out.
const (
	lifecycle = 0
	renewals  = 1
)

// indexBucket returns the name of an index.
func indexBucket(which int) string {
	return [...]string{lifecycle: "lifecycle", renewals: "renewals"}[which]
}

// mmapBytes is how much address space a state file is given from the start, since
// growing beyond it waits for all readers. On 32 bits there is none to spare.
const mmapBytes = 1 << 30 >> (64 - strconv.IntSize)

// filePattern matches the names of state files.
const filePattern = "state-*.db"

// store is one state file. It lives as long as somebody uses it: the FSM until it
// is replaced or closed, and each snapshot and view until it is done.
type store struct {
	db    *bbolt.DB
	path  string
	users atomic.Int64
}

// createStore makes the empty state file number n in dir, with one user.
func createStore(dir string, n int) (*store, error) {
	path := filepath.Join(dir, "state-"+strconv.Itoa(n)+".db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{
		Timeout:         time.Second,
		NoSync:          true,
		NoGrowSync:      true,
		NoFreelistSync:  true,
		FreelistType:    bbolt.FreelistMapType,
		InitialMmapSize: mmapBytes,
		NoStatistics:    true,
	})
	if err != nil {
		return nil, fmt.Errorf("creating the state file %s: %w", path, err)
	}
	s := &store{db: db, path: path}
	s.users.Store(1)
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range []string{metaBucket, recordsBucket, indexBucket(lifecycle), indexBucket(renewals)} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return err
			}
		}
		return putMeta(tx, meta{})
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating the state file %s: %w", path, err), s.release())
	}
	return s, nil
}

// release ends one use; the last one closes and deletes the file.
func (s *store) release() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	if err := errors.Join(s.db.Close(), os.Remove(s.path)); err != nil {
		return fmt.Errorf("closing and deleting the state file %s: %w", s.path, err)
	}
	return nil
}

func bucket(tx *bbolt.Tx, name string) *bbolt.Bucket { return tx.Bucket([]byte(name)) }

func putMeta(tx *bbolt.Tx, m meta) error {
	if err := bucket(tx, metaBucket).Put([]byte(metaKey), appendMeta(nil, m)); err != nil {
		return fmt.Errorf("writing the applied index %d: %w", m.index, err)
	}
	return nil
}

// readMeta returns the meta as tx sees it.
func readMeta(tx *bbolt.Tx) (meta, error) {
	m, f := decodeMeta(string(bucket(tx, metaBucket).Get([]byte(metaKey))))
	if f != nil {
		return meta{}, &CorruptStateError{Where: "meta", Offset: f.offset, Problem: f.problem}
	}
	return m, nil
}

// reference is one operation in an index.
type reference struct {
	ordinal uint32
	key     string
}

// The value of an index at a log index: count ( ordinal key )..., the numbers as
// uvarints, the key after its length. Ordinals ascend.

func appendReferences(b []byte, references []reference) []byte {
	b = binary.AppendUvarint(b, uint64(len(references)))
	for _, ref := range references {
		b = binary.AppendUvarint(b, uint64(ref.ordinal))
		b = appendText(b, ref.key)
	}
	return b
}

// decodeReferences is the inverse of appendReferences.
func decodeReferences(value string) ([]reference, *fault) {
	r := &reader{in: value}
	references := make([]reference, r.count(2, "the number of references"))
	for i := range references {
		references[i] = reference{ordinal: uint32(r.atMost(1<<32-1, "the ordinal")), key: r.text()}
		if i > 0 && references[i].ordinal <= references[i-1].ordinal {
			r.fail("references that do not ascend")
		}
	}
	if len(references) == 0 {
		r.fail("no references")
	}
	return references, r.end()
}

// indexKey returns the key of a log index; keys ascend as indexes do.
func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

func corruptIndex(key []byte, f *fault) error {
	return &CorruptStateError{Where: fmt.Sprintf("the operations of log index %x", key), Offset: f.offset, Problem: f.problem}
}
