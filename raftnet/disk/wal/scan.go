package wal

import (
	"fmt"
)

// scan is a [View] that is being made.
type scan struct {
	*View
	visit Visit
	// lost says that damage was found since the last whole record: what comes next
	// cannot be the next.
	lost bool
	// partial says that a segment lacks something, which may be the newest record.
	partial bool
}

// damaged notes damage; the first is kept.
func (s *scan) damaged(name string, offset int64, problem string) {
	s.lost = true
	if s.Damage == nil {
		s.Damage = &DamageError{Name: name, Offset: offset, Problem: problem}
	}
}

func (s *scan) damagedBlock(at end, problem string) {
	s.damaged(segmentName(s.segments[at.segment].number), int64(at.block)*blockBytes, problem)
}

func (s *scan) readSegments() error {
	for i, g := range s.segments {
		raw := make([]byte, int64(g.blocks)*blockBytes)
		if _, err := g.file.ReadAt(raw, 0); err != nil {
			return fmt.Errorf("read %s: %w", segmentName(g.number), err)
		}
		if err := s.readSegment(i, newContent(g, raw)); err != nil {
			return err
		}
	}
	return nil
}

// readSegment visits the records of one segment.
func (s *scan) readSegment(index int, c *content) error {
	for at := uint32(1); at < c.blocks; {
		p, payload, follows, ok := c.record(at)
		switch {
		case ok:
			if err := s.take(end{index, at}, p, payload, follows); err != nil {
				return err
			}
			at += p.parts
			continue
		case at >= c.used:
			return nil
		}
		if parts, ok := c.tear(at, s.follows.number+1); ok && s.torn == nil && !s.lost {
			s.torn = &tear{end{index, at}, parts}
			return nil
		}
		bad := c.firstBad(at)
		s.damagedBlock(end{index, bad}, "the block is not what was written")
		at = max(bad, at+1)
	}
	return nil
}

// take is a whole record at a place.
func (s *scan) take(at end, p partOf, payload []byte, follows link) error {
	if s.torn != nil {
		// It was finished: another came after it.
		s.damagedBlock(s.torn.at, fmt.Sprintf("record %d is incomplete, and %d was written after it", s.follows.number+1, p.record))
		s.torn = nil
	}
	first := s.follows.number == 0
	// A segment without records is never the first one.
	if first && (at.segment > 0 || s.segments[0].number == 1 && p.record != 1) || !first && follows.number != s.follows.number {
		s.damagedBlock(at, fmt.Sprintf("it has record %d, and %d would be next", p.record, s.follows.number+1))
	}
	if !first && p.record <= s.follows.number {
		return nil
	}
	if !first && !s.lost && follows.sum != s.follows.sum {
		s.damagedBlock(at, fmt.Sprintf("record %d does not follow on the one before it", p.record))
	}
	s.follows = link{p.record, sumRecord(follows.sum, p.record, payload)}
	if s.follows.number == s.mark.newest.number && s.follows.sum != s.mark.newest.sum {
		s.damagedBlock(at, fmt.Sprintf("record %d is another than %s has seen", p.record, MarkName))
	}
	s.lost = false
	s.end = end{at.segment, at.block + p.parts}
	offset := at.block*contentBytes + recordHeader
	return s.visit(Record{Number: p.record, At: Position{s.segments[at.segment].number, offset}, Payload: payload})
}

// finish looks whether anything is missing at the end.
func (s *scan) finish() {
	switch {
	case s.Damage != nil && s.markFile == nil:
		return
	case s.follows.number == 0:
		s.damaged(segmentName(1), -1, "there is no record in the log")
	case s.follows.number < s.mark.newest.number:
		at := s.end
		if s.torn != nil {
			at = s.torn.at
		}
		s.damagedBlock(at, fmt.Sprintf("the log ends with record %d, and had %d", s.follows.number, s.mark.newest.number))
	}
	s.Newest = !s.lost && !s.partial
}

// content is a segment that was read.
type content struct {
	*segment
	raw []byte
	// used is the block after the last one that is not zero.
	used uint32
}

func newContent(g *segment, raw []byte) *content {
	c := &content{segment: g, raw: raw, used: g.blocks}
	for c.used > 0 && isZero(c.block(c.used-1)) {
		c.used--
	}
	return c
}

func (c *content) block(number uint32) []byte {
	at := int64(number) * blockBytes
	return c.raw[at : at+blockBytes]
}

// part returns what a block is, false if it is none that has a place there.
func (c *content) part(number uint32) (partOf, bool) {
	p, ok := openBlock(c.seed, number, c.block(number))
	return p, ok && p.record > 0 && p.part < p.parts && p.part < number && p.parts <= c.blocks-(number-p.part)
}

// record returns the record that begins at a block, and on which it follows, false if
// there is no whole one.
func (c *content) record(at uint32) (partOf, []byte, link, bool) {
	p, ok := c.part(at)
	if !ok || p.part != 0 {
		return p, nil, link{}, false
	}
	joined := make([]byte, 0, int(p.parts)*contentBytes)
	for i := range p.parts {
		if q, ok := c.part(at + i); !ok || q != (partOf{p.record, i, p.parts}) {
			return p, nil, link{}, false
		}
		joined = append(joined, c.block(at + i)[blockHeader:]...)
	}
	payload, previous, _, ok := decodeRecord(p.record, joined)
	return p, payload, link{p.record - 1, previous}, ok
}

// tear returns how many blocks the record has that was begun at a block and not
// finished: some of its blocks are zero, and all that comes after it. False if it is
// something else.
func (c *content) tear(at uint32, record uint64) (parts uint32, ok bool) {
	missing := false
	for i := at; i < c.used; i++ {
		if isZero(c.block(i)) {
			missing = true
			continue
		}
		p, ok := c.part(i)
		if !ok || p.record != record || p.part != i-at || parts != 0 && p.parts != parts {
			return 0, false
		}
		parts = p.parts
	}
	return parts, missing || c.used < at+parts
}

// firstBad returns the first block from at on for which no record begins there.
func (c *content) firstBad(at uint32) uint32 {
	begin, ok := c.part(at)
	if !ok || begin.part != 0 {
		return at
	}
	for i := range begin.parts {
		if p, ok := c.part(at + i); !ok || p != (partOf{begin.record, i, begin.parts}) {
			return at + i
		}
	}
	return at
}
