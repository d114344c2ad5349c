package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

// head is what the newest transaction says of everything. A head is not changed
// once it is written: the next is a copy.
type head struct {
	// first and last are the indexes of the log; both 0 if it is empty.
	first, last uint64
	// before is the checksum of the entry before first, sum that of the last one;
	// both 0 if the log is empty.
	before, sum uint32
	// covered is the index of the newest snapshot that was ever finished here.
	covered uint64
	// stable is raft's keys and values.
	stable map[string][]byte
}

// The format of a head, numbers big-endian: format 1, first 8, last 8, before 4,
// sum 4, covered 8, then for each key, ascending, the length of the key 2, the key,
// the length of the value 2, the value.
//
// The medium seals it: the number of its transaction 8, the head, and the CRC-32C of
// both 4.

const (
	headFormat = 1
	headFixed  = 33
	sealBytes  = 12
	// maxStableBytes bounds a key and a value: raft has three short ones.
	maxStableBytes = 4096
)

func (h *head) encode() []byte {
	b := []byte{headFormat}
	b = binary.BigEndian.AppendUint64(b, h.first)
	b = binary.BigEndian.AppendUint64(b, h.last)
	b = binary.BigEndian.AppendUint32(b, h.before)
	b = binary.BigEndian.AppendUint32(b, h.sum)
	b = binary.BigEndian.AppendUint64(b, h.covered)
	for _, key := range slices.Sorted(maps.Keys(h.stable)) {
		b = binary.BigEndian.AppendUint16(b, uint16(len(key)))
		b = append(b, key...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(h.stable[key])))
		b = append(b, h.stable[key]...)
	}
	return b
}

func decodeHead(b []byte) (*head, error) {
	if len(b) < headFixed {
		return nil, errors.New("the head is too short")
	}
	if b[0] != headFormat {
		return nil, fmt.Errorf("the head has format %d, this program knows %d: start the node with a newer leasenode", b[0], headFormat)
	}
	h := &head{
		first: binary.BigEndian.Uint64(b[1:]), last: binary.BigEndian.Uint64(b[9:]),
		before: binary.BigEndian.Uint32(b[17:]), sum: binary.BigEndian.Uint32(b[21:]),
		covered: binary.BigEndian.Uint64(b[25:]), stable: map[string][]byte{},
	}
	for b = b[headFixed:]; len(b) > 0; {
		var key, value []byte
		var ok1, ok2 bool
		key, b, ok1 = cutText(b)
		value, b, ok2 = cutText(b)
		if !ok1 || !ok2 {
			return nil, errors.New("the head ends within a value")
		}
		h.stable[string(key)] = value
	}
	return h, nil
}

func cutText(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 2 || len(b)-2 < int(binary.BigEndian.Uint16(b)) {
		return nil, nil, false
	}
	end := 2 + int(binary.BigEndian.Uint16(b))
	return slices.Clone(b[2:end]), b[end:], true
}

// with returns a copy of h with another value of key.
func (h *head) with(key string, value []byte) *head {
	next := *h
	next.stable = maps.Clone(h.stable)
	next.stable[key] = slices.Clone(value)
	return &next
}

func sealHead(transaction uint64, h []byte) []byte {
	b := append(binary.BigEndian.AppendUint64(nil, transaction), h...)
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli()))
}

// openSeal returns the head in b, if it was written by the transaction.
func openSeal(transaction uint64, b []byte) (*head, error) {
	if len(b) < sealBytes || crc32.Checksum(b[:len(b)-4], castagnoli()) != binary.BigEndian.Uint32(b[len(b)-4:]) {
		return nil, errors.New("the checksum of the head is another")
	}
	if wrote := binary.BigEndian.Uint64(b); wrote != transaction {
		return nil, fmt.Errorf("the head is of transaction %d, and %d was the last", wrote, transaction)
	}
	return decodeHead(b[8 : len(b)-4])
}
