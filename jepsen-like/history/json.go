package history

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// The domain's types have no form in JSON of their own, so the file has one here.
// Instants and durations are whole nanoseconds.

type recordJSON struct {
	Key              string            `json:"key"`
	Owner            string            `json:"owner,omitempty"`
	Epoch            uint64            `json:"epoch"`
	LeaseUntil       lease.Instant     `json:"lease_until"`
	ForgottenAtEpoch uint64            `json:"forgotten_at_epoch,omitempty"`
	Attributes       map[string]string `json:"attributes,omitempty"`
}

type entryJSON struct {
	Index uint64        `json:"index"`
	Op    string        `json:"op"`
	Key   string        `json:"key"`
	Owner string        `json:"owner"`
	Epoch uint64        `json:"epoch"`
	At    lease.Instant `json:"at"`
	Wall  time.Time     `json:"wall,omitzero"`
}

// plainOp is an Op without its methods; opJSON's record shadows its own.
type plainOp Op

type opJSON struct {
	plainOp
	Record *recordJSON `json:"record,omitempty"`
}

// MarshalJSON writes op with snake_case names; an absent record is left out.
func (op Op) MarshalJSON() ([]byte, error) {
	shape := opJSON{plainOp: plainOp(op)}
	if op.Record.Key != "" || op.Record.Epoch != 0 {
		record := recordJSON(op.Record)
		shape.Record = &record
	}
	return json.Marshal(shape)
}

// UnmarshalJSON is the inverse of [Op.MarshalJSON].
func (op *Op) UnmarshalJSON(data []byte) error {
	var shape opJSON
	if err := json.Unmarshal(data, &shape); err != nil {
		return err
	}
	*op = Op(shape.plainOp)
	// What no judge knows would pass unseen.
	if !slices.Contains([]Outcome{OK, Held, Lost, Unavailable, Unknown, Invalid, Exhausted}, op.Outcome) {
		return fmt.Errorf("operation %d: there is no outcome %q", op.ID, op.Outcome)
	}
	if !slices.Contains([]Kind{Acquire, Renew, Release, Forget, Get, GetStale}, op.Kind) {
		return fmt.Errorf("operation %d: there is no kind %q", op.ID, op.Kind)
	}
	if shape.Record != nil {
		op.Record = lease.Record(*shape.Record)
	}
	return nil
}

func entriesToJSON(entries []lease.Entry) []entryJSON {
	shapes := make([]entryJSON, len(entries))
	for i, e := range entries {
		shapes[i] = entryJSON{Index: e.Index, Op: e.Op.String(), Key: e.Key, Owner: e.Owner, Epoch: e.Epoch, At: e.At, Wall: e.Wall}
	}
	return shapes
}

func entriesFromJSON(shapes []entryJSON) ([]lease.Entry, error) {
	entries := make([]lease.Entry, len(shapes))
	for i, s := range shapes {
		op, known := opOf(s.Op)
		if !known {
			return nil, fmt.Errorf("entry %d of the stored history has the unknown op %q", i, s.Op)
		}
		entries[i] = lease.Entry{Index: s.Index, Op: op, Key: s.Key, Owner: s.Owner, Epoch: s.Epoch, At: s.At, Wall: s.Wall}
	}
	return entries, nil
}

// opOf is the inverse of [lease.Op.String] for the operations that there are.
func opOf(word string) (lease.Op, bool) {
	for _, op := range []lease.Op{lease.OpAcquire, lease.OpRenew, lease.OpRelease, lease.OpForget} {
		if op.String() == word {
			return op, true
		}
	}
	return 0, false
}

func recordsToJSON(records []lease.Record) []recordJSON {
	shapes := make([]recordJSON, len(records))
	for i, r := range records {
		shapes[i] = recordJSON(r)
	}
	return shapes
}

func recordsFromJSON(shapes []recordJSON) []lease.Record {
	records := make([]lease.Record, len(shapes))
	for i, s := range shapes {
		records[i] = lease.Record(s)
	}
	return records
}
