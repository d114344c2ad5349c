package wal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// The format of a block, numbers big-endian:
//
//	sum     4  CRC-32C of the log's id, the segment, the number of the block in it, and
//	           what follows
//	record  8  number of the record, from 1 on; 0 in the first block of a segment
//	part    4  which block of the record, from 0 on
//	parts   4  how many blocks the record has
//	content to the end, zeros behind the record's end
//
// The content of a record's blocks together:
//
//	previous 4  checksum of the record before
//	sum      4  CRC-32C of previous, the number of the record and its payload
//	length   4  of the payload
//	payload
//
// The content of the first block of a segment is magic, the log's id 8, the number of
// the segment 4 and how many blocks it has 4.

const (
	blockBytes   = 512
	blockHeader  = 20
	contentBytes = blockBytes - blockHeader
	recordHeader = 12
	magic        = "leasenode log 1\n"
)

// partOf is what a block says it is.
type partOf struct {
	record      uint64
	part, parts uint32
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// seedOf is what all checksums of a segment begin with.
func seedOf(id uint64, segment uint32) uint32 {
	var b [12]byte
	binary.BigEndian.PutUint64(b[:], id)
	binary.BigEndian.PutUint32(b[8:], segment)
	return crc32.Checksum(b[:], castagnoli())
}

func sumBlock(seed, number uint32, b []byte) uint32 {
	var at [4]byte
	binary.BigEndian.PutUint32(at[:], number)
	return crc32.Update(crc32.Update(seed, castagnoli(), at[:]), castagnoli(), b[4:blockBytes])
}

// sealBlock fills in all of b but its content.
func sealBlock(seed, number uint32, b []byte, p partOf) {
	binary.BigEndian.PutUint64(b[4:], p.record)
	binary.BigEndian.PutUint32(b[12:], p.part)
	binary.BigEndian.PutUint32(b[16:], p.parts)
	binary.BigEndian.PutUint32(b, sumBlock(seed, number, b))
}

// openBlock returns what b is, false if it is not what was written there.
func openBlock(seed, number uint32, b []byte) (partOf, bool) {
	p := partOf{record: binary.BigEndian.Uint64(b[4:]), part: binary.BigEndian.Uint32(b[12:]), parts: binary.BigEndian.Uint32(b[16:])}
	return p, binary.BigEndian.Uint32(b) == sumBlock(seed, number, b)
}

// isZero tells bytes that were never written; b is a block or less.
func isZero(b []byte) bool {
	var zeros [blockBytes]byte
	return bytes.Equal(b, zeros[:len(b)])
}

// partsFor returns how many blocks a record with a payload of size bytes has.
func partsFor(size int) uint32 {
	return uint32((size + recordHeader + contentBytes - 1) / contentBytes)
}

// sumRecord is the checksum of a record.
func sumRecord(previous uint32, number uint64, payload []byte) uint32 {
	var b [12]byte
	binary.BigEndian.PutUint32(b[:], previous)
	binary.BigEndian.PutUint64(b[4:], number)
	return crc32.Update(crc32.Checksum(b[:], castagnoli()), castagnoli(), payload)
}

// encodeRecord appends the blocks of a record, the first of which is block number of its
// segment, to b, and returns the record's checksum.
func encodeRecord(b []byte, seed, number uint32, link link, payload []byte) ([]byte, uint32) {
	record := link.number + 1
	sum := sumRecord(link.sum, record, payload)
	parts := partsFor(len(payload))
	for part := range parts {
		var block [blockBytes]byte
		content := block[blockHeader:]
		if part == 0 {
			binary.BigEndian.PutUint32(content, link.sum)
			binary.BigEndian.PutUint32(content[4:], sum)
			binary.BigEndian.PutUint32(content[8:], uint32(len(payload)))
			content = content[recordHeader:]
		}
		payload = payload[copy(content, payload):]
		sealBlock(seed, number+part, block[:], partOf{record, part, parts})
		b = append(b, block[:]...)
	}
	return b, sum
}

// link is a record that another follows on: its number and checksum.
type link struct {
	number uint64
	sum    uint32
}

// decodeRecord returns the payload in content, which is that of all the blocks of the
// record number, and the two checksums, false if they are not what was written.
func decodeRecord(number uint64, content []byte) (payload []byte, previous, sum uint32, ok bool) {
	previous, sum = binary.BigEndian.Uint32(content), binary.BigEndian.Uint32(content[4:])
	length := uint64(binary.BigEndian.Uint32(content[8:]))
	content = content[recordHeader:]
	if length > uint64(len(content)) || uint64(len(content))-length >= contentBytes {
		return nil, 0, 0, false
	}
	payload = content[:length:length]
	return payload, previous, sum, sumRecord(previous, number, payload) == sum
}
