package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// segment is one file of blocks. Its fields do not change.
type segment struct {
	number uint32
	// blocks is how many it has, the first included.
	blocks uint32
	seed   uint32
	file   File
}

const (
	segmentSuffix    = ".seg"
	unfinishedSuffix = ".new"
	// A segment is twice as long as the one before, from minBlocks to maxBlocks, 64 KiB
	// and 8 MiB: a log that is hardly used takes little room. A longer record gets a
	// longer segment.
	minBlocks = 128
	maxBlocks = 16384
	// zeroBytes is how many are written at a time.
	zeroBytes = 256 << 10
)

func segmentName(number uint32) string { return fmt.Sprintf("%08d%s", number, segmentSuffix) }

// parseSegment returns the number in the name of a segment.
func parseSegment(name string) (uint32, bool) {
	var number uint32
	n, err := fmt.Sscanf(name, "%08d", &number)
	return number, err == nil && n == 1 && number > 0 && name == segmentName(number)
}

// makeSegment makes an empty segment and returns when it is durable, name and all. It
// replaces one of that number. If it fails nothing of it is left, as far as that can be
// had.
func makeSegment(files Files, id uint64, number, blocks uint32) (*segment, error) {
	unfinished := segmentName(number) + unfinishedSuffix
	f, err := files.Create(unfinished)
	if err != nil {
		return nil, fmt.Errorf("make segment %d: %w", number, err)
	}
	g := &segment{number: number, blocks: blocks, seed: seedOf(id, number), file: f}
	if err = g.fill(id); err == nil {
		err = files.Rename(unfinished, segmentName(number))
	}
	if err == nil {
		err = files.Sync()
	}
	if err != nil {
		_ = files.Remove(unfinished) // it may be there or not
		return nil, errors.Join(fmt.Errorf("make segment %d: %w", number, err), f.Close())
	}
	return g, nil
}

// fill writes all blocks and makes them durable.
func (g *segment) fill(id uint64) error {
	size := int64(g.blocks) * blockBytes
	zeros := make([]byte, min(size, zeroBytes))
	for at := int64(0); at < size; at += int64(len(zeros)) {
		if _, err := g.file.WriteAt(zeros[:min(size-at, int64(len(zeros)))], at); err != nil {
			return err
		}
	}
	if _, err := g.file.WriteAt(encodeSegment(id, g.number, g.blocks), 0); err != nil {
		return err
	}
	return g.file.Sync()
}

func encodeSegment(id uint64, number, blocks uint32) []byte {
	b := make([]byte, blockBytes)
	content := b[blockHeader:]
	copy(content, magic)
	binary.BigEndian.PutUint64(content[len(magic):], id)
	binary.BigEndian.PutUint32(content[len(magic)+8:], number)
	binary.BigEndian.PutUint32(content[len(magic)+12:], blocks)
	sealBlock(seedOf(id, number), 0, b, partOf{})
	return b
}

// decodeSegment returns how many blocks the segment has that b begins, false if b is
// not the first block of the segment number of the log id.
func decodeSegment(id uint64, number uint32, b []byte) (blocks uint32, ok bool) {
	p, ok := openBlock(seedOf(id, number), 0, b)
	content := b[blockHeader:]
	if !ok || p != (partOf{}) || string(content[:len(magic)]) != magic ||
		binary.BigEndian.Uint64(content[len(magic):]) != id || binary.BigEndian.Uint32(content[len(magic)+8:]) != number {
		return 0, false
	}
	return binary.BigEndian.Uint32(content[len(magic)+12:]), true
}

// read returns size bytes of the contents of the blocks, from offset on.
func (g *segment) read(offset uint32, size int) ([]byte, error) {
	first := offset / contentBytes
	skip := int(offset % contentBytes)
	blocks := (skip + size + contentBytes - 1) / contentBytes
	raw := make([]byte, blocks*blockBytes)
	if _, err := g.file.ReadAt(raw, int64(first)*blockBytes); err != nil {
		return nil, fmt.Errorf("read %s: %w", segmentName(g.number), err)
	}
	return strip(raw)[skip : skip+size], nil
}

// strip moves the contents of the blocks in raw together, and returns them.
func strip(raw []byte) []byte {
	n := 0
	for at := 0; at < len(raw); at += blockBytes {
		n += copy(raw[n:], raw[at+blockHeader:at+blockBytes])
	}
	return raw[:n]
}
