package feed

import (
	"encoding/binary"
	"maps"
	"slices"
	"unsafe"

	"github.com/leasenode/leasenode/lease"
)

// event is an event as it is kept: one piece of memory beside its own.
type event struct {
	until lease.Instant
	epoch uint64
	floor uint64
	// text is the key, the owner, and the attributes: names and values in the order of
	// the names, each after its length as a uvarint.
	text       string
	order      uint32 // its number among the events of its log entry
	key, owner uint16 // lengths
	kind       lease.EventKind
}

// eventBytes is what an event takes up beside its texts.
const eventBytes = int(unsafe.Sizeof(event{}))

func newEvent(kind lease.EventKind, order uint32, r lease.Record) event {
	size := len(r.Key) + len(r.Owner)
	for name, value := range r.Attributes {
		size += len(name) + len(value) + 2*binary.MaxVarintLen16
	}
	text := make([]byte, 0, size)
	text = append(append(text, r.Key...), r.Owner...)
	if len(r.Attributes) > 0 {
		for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
			text = appendText(appendText(text, name), r.Attributes[name])
		}
	}
	return event{
		kind: kind, order: order, until: r.LeaseUntil, epoch: r.Epoch, floor: r.ForgottenAtEpoch,
		text: string(text), key: uint16(len(r.Key)), owner: uint16(len(r.Owner)),
	}
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (e *event) keyText() string { return e.text[:e.key] }

func (e *event) bytes() int { return eventBytes + len(e.text) }

// record returns the record in e. Its texts share e's memory.
func (e *event) record() lease.Record {
	r := lease.Record{
		Key: e.text[:e.key], Owner: e.text[e.key:][:e.owner],
		Epoch: e.epoch, LeaseUntil: e.until, ForgottenAtEpoch: e.floor,
	}
	rest := e.text[int(e.key)+int(e.owner):]
	for rest != "" {
		var name, value string
		name, rest = cutText(rest)
		value, rest = cutText(rest)
		if r.Attributes == nil {
			r.Attributes = map[string]string{}
		}
		r.Attributes[name] = value
	}
	return r
}

func cutText(s string) (text, rest string) {
	head := min(len(s), binary.MaxVarintLen64)
	length, n := binary.Uvarint([]byte(s[:head]))
	return s[n:][:length], s[n+int(length):]
}
