package fsm

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// The format of log entries, for ever:
//
//	entry     = version(1) kind ( opening | batch )
//	opening   = wall max-keys history-grants history-renewals history-operations    kind 1
//	batch     = reading term wall count mutation...                                 kind 2
//	mutation  = op key owner ( ttl request-id attributes | epoch ttl | epoch )
//	                           acquire                     renew       release, forget
//	attributes = count ( name value )...                    ascending by name
//
// version, kind and op are a byte each; ttl is a zigzag varint of nanoseconds; key,
// owner, request-id, name and value are bytes after their length; everything else
// is a uvarint; reading and wall are nanoseconds.

// EntryVersion is the highest version of log entries that this program
// understands.
const EntryVersion = 1

const (
	// MaxEntryBytes is how long the mutations of one log entry may be together, as
	// [EncodeMutation] returns them. What [EncodeBatch] puts before them, at most
	// maxHeaderBytes, is not counted.
	MaxEntryBytes  = 512 << 10
	maxHeaderBytes = 2 + 4*binary.MaxVarintLen64
)

const (
	kindOpening = 1
	kindBatch   = 2
)

// maxInstant leaves room for the longest ttl, so that the end of a lease never
// wraps. maxWall (in the year 2116) leaves the clock that begins there as long
// again to run.
const (
	maxInstant = math.MaxInt64 - uint64(lease.MaxTTL)
	maxWall    = uint64(1) << 62
)

// minMutationBytes is the length of the shortest mutation: op, key, owner, epoch.
const minMutationBytes = 4

// Opening is what a new leader commits first, to open its term. It carries no
// reading of the cluster clock.
type Opening struct {
	// Wall is the proposer's wall time. The cluster clock starts with it if the
	// state has none yet, and else it is ignored. It is kept within 1970 and 2116.
	Wall time.Time
	// Settings are used as Wall is. A field of 0 stands for its default.
	Settings Settings
}

// Stamp says when, on the leader's clocks, a batch was closed.
type Stamp struct {
	// Reading is the cluster clock as the leader has it, taken after the last
	// mutation has joined the batch: 0 to 2^63 - 1 - [lease.MaxTTL].
	Reading lease.Instant
	// Term is the term in which Reading was taken.
	Term uint64
	// Wall goes into history, for people to read. It is kept within 1970 and 2116.
	Wall time.Time
}

// EncodeOpening returns o as a log entry. It panics if the settings do not pass
// [Settings.Validate], zeros aside: such an entry would stop every node.
func EncodeOpening(o Opening) []byte {
	s := o.Settings.withDefaults()
	if err := s.Validate(); err != nil {
		panic(fmt.Sprintf("fsm: an opening with bad settings: %v", err))
	}
	b := []byte{EntryVersion, kindOpening}
	b = binary.AppendUvarint(b, wallNanos(o.Wall))
	return appendSettings(b, s)
}

// EncodeBatch returns a log entry with the mutations that [EncodeMutation] made
// bodies of; none makes it a tick, which only moves the clock. It panics if they
// are longer than [MaxEntryBytes] together or the reading is out of bounds: such
// an entry would stop every node.
func EncodeBatch(s Stamp, bodies [][]byte) []byte {
	size := 0
	for _, body := range bodies {
		size += len(body)
	}
	if size > MaxEntryBytes || uint64(s.Reading) > maxInstant {
		panic(fmt.Sprintf("fsm: a batch of %d bytes (at most %d) with reading %d (0 to %d)", size, MaxEntryBytes, s.Reading, maxInstant))
	}
	b := append(make([]byte, 0, maxHeaderBytes+size), EntryVersion, kindBatch)
	b = binary.AppendUvarint(b, uint64(s.Reading))
	b = binary.AppendUvarint(b, s.Term)
	b = binary.AppendUvarint(b, wallNanos(s.Wall))
	b = binary.AppendUvarint(b, uint64(len(bodies)))
	for _, body := range bodies {
		b = append(b, body...)
	}
	return b
}

// EncodeMutation returns m as [EncodeBatch] wants it. Fields that m's operation
// does not use are left out. It panics if the operation is none of package lease:
// such an entry would stop every node. Whether m is within the limits is looked at
// when it is applied.
func EncodeMutation(m lease.Mutation) []byte {
	b := make([]byte, 0, 32+len(m.Key)+len(m.Owner)+len(m.RequestID))
	b = append(b, byte(m.Op))
	b = appendText(b, m.Key)
	b = appendText(b, m.Owner)
	switch m.Op {
	case lease.OpAcquire:
		b = binary.AppendVarint(b, int64(m.TTL))
		b = appendText(b, m.RequestID)
		return appendAttributes(b, m.Attributes)
	case lease.OpRenew:
		b = binary.AppendUvarint(b, m.Epoch)
		return binary.AppendVarint(b, int64(m.TTL))
	case lease.OpRelease, lease.OpForget:
		return binary.AppendUvarint(b, m.Epoch)
	default:
		panic(fmt.Sprintf("fsm: a mutation with operation %v", m.Op))
	}
}

// entry is a decoded log entry. Invariant: kind is one of the kinds.
type entry struct {
	kind      byte
	opening   Opening // of kindOpening
	stamp     Stamp   // of kindBatch, like mutations
	mutations []lease.Mutation
}

// decodeEntry is the inverse of EncodeOpening and EncodeBatch. It accepts nothing
// that they would not have written, and returns an [*UnknownEntryError] or a
// [*CorruptEntryError] for everything else. It keeps no part of data.
func decodeEntry(data []byte) (entry, error) {
	r := &reader{in: string(data)}
	if version := r.byte(); r.bad == nil && version != EntryVersion {
		return entry{}, &UnknownEntryError{What: "version", Number: uint64(version)}
	}
	e := entry{kind: r.byte()}
	switch {
	case r.bad != nil:
	case e.kind == kindOpening:
		e.opening = Opening{Wall: r.wall(), Settings: r.settings()}
	case e.kind == kindBatch:
		if err := r.batch(&e); err != nil {
			return entry{}, err
		}
	default:
		return entry{}, &UnknownEntryError{What: "kind", Number: uint64(e.kind)}
	}
	if f := r.end(); f != nil {
		return entry{}, &CorruptEntryError{Offset: f.offset, Problem: f.problem}
	}
	return e, nil
}

func (r *reader) batch(e *entry) error {
	e.stamp = Stamp{Reading: lease.Instant(r.atMost(maxInstant, "the reading")), Term: r.uvarint(), Wall: r.wall()}
	n := r.count(minMutationBytes, "the number of mutations")
	if r.left() > MaxEntryBytes {
		r.fail(fmt.Sprintf("%d bytes of mutations, and at most %d are allowed", r.left(), MaxEntryBytes))
		return nil
	}
	e.mutations = make([]lease.Mutation, n)
	for i := range e.mutations {
		if err := r.mutation(&e.mutations[i]); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) mutation(m *lease.Mutation) error {
	m.Op = lease.Op(r.byte())
	if r.bad == nil && (m.Op < lease.OpAcquire || m.Op > lease.OpForget) {
		return &UnknownEntryError{What: "operation", Number: uint64(m.Op)}
	}
	m.Key = r.text()
	m.Owner = r.text()
	if m.Op == lease.OpAcquire {
		m.TTL = time.Duration(r.varint())
		m.RequestID = r.text()
		m.Attributes = r.attributes()
		return nil
	}
	m.Epoch = r.uvarint()
	if m.Op == lease.OpRenew {
		m.TTL = time.Duration(r.varint())
	}
	return nil
}

func appendAttributes(b []byte, attributes map[string]string) []byte {
	b = binary.AppendUvarint(b, uint64(len(attributes)))
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		b = appendText(b, name)
		b = appendText(b, attributes[name])
	}
	return b
}

func (r *reader) attributes() map[string]string {
	n := r.count(2, "the number of attributes")
	if n == 0 {
		return nil
	}
	attributes := make(map[string]string, n)
	before := ""
	for i := range n {
		name := r.text()
		if i > 0 && name <= before {
			r.fail("attributes that do not ascend")
		}
		attributes[name] = r.text()
		before = name
	}
	return attributes
}

func appendSettings(b []byte, s Settings) []byte {
	for _, v := range []uint64{s.MaxKeys, s.HistoryGrants, s.HistoryRenewals, s.HistoryOperations} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func (r *reader) settings() Settings {
	s := Settings{MaxKeys: r.uvarint(), HistoryGrants: r.uvarint(), HistoryRenewals: r.uvarint(), HistoryOperations: r.uvarint()}
	if err := s.Validate(); r.bad == nil && err != nil {
		r.fail(err.Error())
	}
	return s
}

func (r *reader) wall() time.Time { return wallTime(r.atMost(maxWall, "the wall time")) }

// wallNanos returns t in nanoseconds since 1970, kept within 0 and maxWall: a wall
// clock that is far off must neither wrap nor stop a node.
func wallNanos(t time.Time) uint64 {
	switch {
	case t.Before(time.Unix(0, 0)):
		return 0
	case t.After(time.Unix(0, int64(maxWall))):
		return maxWall
	default:
		return uint64(t.UnixNano())
	}
}

func wallTime(nanos uint64) time.Time { return time.Unix(0, int64(nanos)).UTC() }
