package fsm

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/leasenode/leasenode/lease"
)

// The format of a record's value, for ever; its key is the key:
//
//	value      = version(1) epoch lease-until floor owner request-id attributes history
//	history    = acquires operations operation...
//	operation  = op index-delta ordinal at-delta wall-delta [ owner request-id ]
//
// version and op are a byte, wall-delta is a zigzag varint, the texts and
// attributes are as in log entries, everything else is a uvarint. Deltas are to
// the operation before, the first to 0. Owner and request id are there for each
// acquire but the last, which is the record's own grant. Epochs are not written:
// the last acquire has the record's, and each one before it one less.

const recordVersion = 1

// minOperationBytes is the length of the shortest operation.
const minOperationBytes = 5

// stored is what the state machine keeps of a key that was ever granted. Once
// made it is never changed; a change makes another.
type stored struct {
	record lease.Record
	// requestID is that of the current grant; empty for none.
	requestID string
	// history is what is remembered of the key, in log order. Invariants: it begins
	// with an acquire; the last acquire is the current grant; what follows an acquire
	// up to the next is of its epoch; the next has the next epoch.
	history []operation
}

// operation is a remembered operation.
type operation struct {
	op lease.Op
	// position is where it was granted. Invariant: ascending.
	position Position
	// at is the cluster clock then. Invariant: never descending.
	at lease.Instant
	// wall is the leader's wall time, in nanoseconds.
	wall  uint64
	epoch uint64
	owner string
	// requestID is of acquires only.
	requestID string
}

// Position is a place in the listing of all operations: the log index of the
// entry, and the operation's number in it, from 0.
type Position struct {
	Index   uint64
	Ordinal uint32
}

// before reports whether p is earlier in the log than q.
func (p Position) before(q Position) bool {
	return p.Index < q.Index || p.Index == q.Index && p.Ordinal < q.Ordinal
}

// appendRecord appends s as a record's value.
func appendRecord(b []byte, s *stored) []byte {
	b = append(b, recordVersion)
	b = binary.AppendUvarint(b, s.record.Epoch)
	b = binary.AppendUvarint(b, uint64(s.record.LeaseUntil))
	b = binary.AppendUvarint(b, s.record.ForgottenAtEpoch)
	b = appendText(b, s.record.Owner)
	b = appendText(b, s.requestID)
	b = appendAttributes(b, s.record.Attributes)
	return appendHistory(b, s.history)
}

func appendHistory(b []byte, history []operation) []byte {
	acquires := countOf(history, lease.OpAcquire)
	b = binary.AppendUvarint(b, acquires)
	b = binary.AppendUvarint(b, uint64(len(history)))
	var before operation
	for _, o := range history {
		b = append(b, byte(o.op))
		b = binary.AppendUvarint(b, o.position.Index-before.position.Index)
		b = binary.AppendUvarint(b, uint64(o.position.Ordinal))
		b = binary.AppendUvarint(b, uint64(o.at-before.at))
		b = binary.AppendVarint(b, int64(o.wall)-int64(before.wall))
		before = o
		if o.op != lease.OpAcquire {
			continue
		}
		if acquires--; acquires > 0 {
			b = appendText(b, o.owner)
			b = appendText(b, o.requestID)
		}
	}
	return b
}

// decodeRecord is the inverse of appendRecord. It accepts nothing else, and
// returns a [*CorruptStateError] for it. What it returns shares value's memory.
func decodeRecord(key, value string) (*stored, error) {
	r := &reader{in: value}
	s := &stored{record: lease.Record{Key: key}}
	r.numbers(&s.record)
	s.requestID = r.ownerAndAttributes(&s.record)
	s.history = r.history(s)
	if f := r.end(); f != nil {
		return nil, corruptRecord(key, f)
	}
	return s, nil
}

// decodeReadable fills record, whose key is set, with the part of a value that
// readers of records see. What follows it is not looked at.
func decodeReadable(record *lease.Record, value string) error {
	r := &reader{in: value}
	r.numbers(record)
	r.ownerAndAttributes(record)
	if r.bad != nil {
		return corruptRecord(record.Key, r.bad)
	}
	return nil
}

func corruptRecord(key string, f *fault) error {
	return &CorruptStateError{Where: fmt.Sprintf("%q", key), Offset: f.offset, Problem: f.problem}
}

// maxNumbersBytes is how long the part can be that numbers reads.
const maxNumbersBytes = 1 + 3*binary.MaxVarintLen64

// numbers reads the part of a value that tells whether its lease is over.
func (r *reader) numbers(record *lease.Record) {
	if version := r.byte(); r.bad == nil && version != recordVersion {
		r.fail(fmt.Sprintf("a record of version %d", version))
	}
	record.Epoch = r.atMost(lease.MaxEpoch, "the epoch")
	record.LeaseUntil = lease.Instant(r.atMost(math.MaxInt64, "the end of the lease"))
	record.ForgottenAtEpoch = r.atMost(record.Epoch, "the forgotten floor")
	if record.Epoch == 0 {
		r.fail("a record without a grant")
	}
}

// ownerAndAttributes reads what follows numbers, and returns the request id.
func (r *reader) ownerAndAttributes(record *lease.Record) string {
	record.Owner = r.text()
	requestID := r.text()
	record.Attributes = r.attributes()
	return requestID
}

func (r *reader) history(s *stored) []operation {
	acquires := r.atMost(min(s.record.Epoch, MaxHistoryPerKey), "the number of grants")
	n := r.count(minOperationBytes, "the number of operations")
	history := make([]operation, 0, n)
	before := operation{epoch: s.record.Epoch - acquires}
	for range n {
		o := r.operation(before)
		switch {
		case o.op == lease.OpAcquire && o.epoch == s.record.Epoch:
			o.owner, o.requestID = s.record.Owner, s.requestID
		case o.op == lease.OpAcquire:
			o.owner, o.requestID = r.text(), r.text()
		case len(history) == 0:
			r.fail("a history that does not begin with an acquire")
		}
		if r.bad != nil {
			return nil
		}
		history = append(history, o)
		before = o
	}
	if before.epoch != s.record.Epoch || n == 0 {
		r.fail("a history without the current grant")
	}
	return history
}

// operation reads one operation without its owner and request id: those it has
// are before's.
func (r *reader) operation(before operation) operation {
	o := operation{op: lease.Op(r.byte()), epoch: before.epoch, owner: before.owner}
	if o.op < lease.OpAcquire || o.op > lease.OpForget {
		r.fail(fmt.Sprintf("operation %d", o.op))
	}
	if o.op == lease.OpAcquire {
		o.epoch++
	}
	o.position.Index = before.position.Index + r.atMost(math.MaxUint64-before.position.Index, "the log index")
	o.position.Ordinal = uint32(r.atMost(math.MaxUint32, "the ordinal"))
	if !before.position.before(o.position) {
		r.fail("operations that do not ascend")
	}
	o.at = before.at + lease.Instant(r.atMost(math.MaxInt64-uint64(before.at), "the cluster time"))
	wall := int64(before.wall) + r.varint()
	if wall < 0 || uint64(wall) > maxWall {
		r.fail("a wall time that is out of bounds")
	}
	o.wall = uint64(wall)
	return o
}
