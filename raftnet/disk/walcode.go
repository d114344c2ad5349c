package disk

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

// A record of the log in files is one change, numbers big-endian: the length of the head
// 4, the head, the range of what is deleted 8 and 8, and then for each entry its index 8,
// its length 4 and its value.

const (
	changeFixed = 20
	entryFixed  = 12
)

// encodeChange appends c to b and returns where in the result its values begin.
func encodeChange(b []byte, c Change) (record []byte, starts []uint32) {
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Head)))
	b = append(b, c.Head...)
	b = binary.BigEndian.AppendUint64(b, c.Delete.First)
	b = binary.BigEndian.AppendUint64(b, c.Delete.Last)
	for _, e := range c.Put {
		b = binary.BigEndian.AppendUint64(b, e.Index)
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.Value)))
		starts = append(starts, uint32(len(b)))
		b = append(b, e.Value...)
	}
	return b, starts
}

// sizeOfChange is how many bytes encodeChange appends.
func sizeOfChange(c Change) int {
	size := changeFixed + len(c.Head)
	for _, e := range c.Put {
		size += entryFixed + len(e.Value)
	}
	return size
}

// decodeChange returns the change in b, of which it keeps parts.
func decodeChange(b []byte) (c Change, starts []uint32, err error) {
	errShort := errors.New("a record ends too early")
	if len(b) < changeFixed || uint64(len(b)-changeFixed) < uint64(binary.BigEndian.Uint32(b)) {
		return Change{}, nil, errShort
	}
	size := len(b)
	end := 4 + int(binary.BigEndian.Uint32(b))
	c.Head, b = b[4:end], b[end:]
	c.Delete = Range{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}
	for b = b[16:]; len(b) > 0; {
		if len(b) < entryFixed || uint64(len(b)-entryFixed) < uint64(binary.BigEndian.Uint32(b[8:])) {
			return Change{}, nil, errShort
		}
		index, end := binary.BigEndian.Uint64(b), entryFixed+int(binary.BigEndian.Uint32(b[8:]))
		starts = append(starts, uint32(size-len(b)+entryFixed))
		c.Put = append(c.Put, Entry{index, b[entryFixed:end]})
		b = b[end:]
	}
	return c, starts, nil
}

// walIndex is where the entries are. It is used by one goroutine at a time.
type walIndex struct {
	// base is the index of the first place; a place of no segment is a hole.
	base   uint64
	places []place
	// head is that of the newest change.
	head *head
	// segment is where the newest change is.
	segment uint32
}

// place is where an entry is: 12 bytes for each.
type place struct {
	at     wal.Position
	length uint32
}

// visit takes in a record that is read.
func (x *walIndex) visit(r wal.Record) error {
	c, starts, err := decodeChange(r.Payload)
	if err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	if x.head, err = decodeHead(c.Head); err != nil {
		return fmt.Errorf("record %d: %w", r.Number, err)
	}
	x.take(c, r.At, starts)
	return nil
}

// take takes in a change whose record is at a place.
func (x *walIndex) take(c Change, at wal.Position, starts []uint32) {
	x.segment = at.Segment
	x.remove(c.Delete)
	for i, e := range c.Put {
		x.put(e.Index, place{wal.Position{Segment: at.Segment, Offset: at.Offset + starts[i]}, uint32(len(e.Value))})
	}
}

// end is the index after the last place.
func (x *walIndex) end() uint64 { return x.base + uint64(len(x.places)) }

func (x *walIndex) remove(r Range) {
	if r.First == 0 || len(x.places) == 0 || r.Last < x.base || r.First >= x.end() {
		return
	}
	switch {
	case r.First <= x.base && r.Last+1 >= x.end():
		x.places = nil
	case r.First <= x.base:
		x.places = x.places[r.Last+1-x.base:]
		x.base = r.Last + 1
	case r.Last+1 >= x.end():
		x.places = x.places[:r.First-x.base]
	default:
		clear(x.places[r.First-x.base : r.Last+1-x.base])
	}
}

// put notes where an entry is. One far from the others, which is so only after damage,
// takes their place.
func (x *walIndex) put(index uint64, p place) {
	const farthest = 1 << 24
	switch {
	case len(x.places) == 0 || index < x.base || index > x.end()+farthest:
		x.base, x.places = index, append(x.places[:0:0], p)
	case index < x.end():
		x.places[index-x.base] = p
	default:
		x.places = append(append(x.places, make([]place, index-x.end())...), p)
	}
}

// find returns where an entry is, false if there is none.
func (x *walIndex) find(index uint64) (place, bool) {
	if index < x.base || index >= x.end() {
		return place{}, false
	}
	p := x.places[index-x.base]
	return p, p.at.Segment > 0
}

// needed is the first segment that has something of the log.
func (x *walIndex) needed() uint32 {
	for _, p := range x.places {
		if p.at.Segment > 0 {
			return min(p.at.Segment, x.segment)
		}
	}
	return x.segment
}
