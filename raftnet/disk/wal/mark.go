package wal

import (
	"encoding/binary"
	"hash/crc32"
)

// The file mark is one sector, numbers big-endian: CRC-32C of what follows 4, magic,
// the log's id 8, then of the newest record known to be durable the number 8 and the
// checksum 4, zeros to the end.
const (
	// MarkName is the file's.
	MarkName  = "mark"
	markMagic = "leasenode mark1\n"
	markFixed = 40
)

// mark is what the file says.
type mark struct {
	id     uint64
	newest link
}

func (m mark) encode() []byte {
	b := make([]byte, blockBytes)
	copy(b[4:], markMagic)
	binary.BigEndian.PutUint64(b[20:], m.id)
	binary.BigEndian.PutUint64(b[28:], m.newest.number)
	binary.BigEndian.PutUint32(b[36:], m.newest.sum)
	binary.BigEndian.PutUint32(b, crc32.Checksum(b[4:], castagnoli()))
	return b
}

// decodeMark returns the mark in b, false if it is not one.
func decodeMark(b []byte) (mark, bool) {
	if len(b) != blockBytes || string(b[4:20]) != markMagic || !isZero(b[markFixed:]) ||
		binary.BigEndian.Uint32(b) != crc32.Checksum(b[4:], castagnoli()) {
		return mark{}, false
	}
	m := mark{id: binary.BigEndian.Uint64(b[20:])}
	m.newest = link{binary.BigEndian.Uint64(b[28:]), binary.BigEndian.Uint32(b[36:])}
	return m, true
}
