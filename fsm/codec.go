package fsm

import (
	"encoding/binary"
	"fmt"
)

// The primitives of all formats: uvarint and zigzag varint in their shortest form
// only, so that a value has one encoding, and text with its length in front.

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

// fault is what is wrong with encoded bytes, and where; each format has an error
// of its own that it becomes.
type fault struct {
	offset  int
	problem string
}

func (f *fault) Error() string { return fmt.Sprintf("byte %d: %s", f.offset, f.problem) }

// reader takes values off encoded bytes. The first fault sticks: from then on it
// returns zero values. Texts share in's memory.
type reader struct {
	in  string
	off int
	bad *fault
}

func (r *reader) fail(problem string) {
	if r.bad == nil {
		r.bad = &fault{offset: r.off, problem: problem}
	}
}

func (r *reader) left() int { return len(r.in) - r.off }

func (r *reader) byte() byte {
	if r.bad != nil || r.left() < 1 {
		r.fail("cut short")
		return 0
	}
	r.off++
	return r.in[r.off-1]
}

func (r *reader) uvarint() uint64 {
	var v uint64
	for shift := 0; r.bad == nil; shift += 7 {
		c := r.byte()
		if shift == 63 && c > 1 {
			r.fail("a number of more than 64 bits")
		}
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if c == 0 && shift > 0 {
				r.fail("a number that is not in its shortest form")
			}
			break
		}
	}
	if r.bad != nil {
		return 0
	}
	return v
}

func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// atMost is uvarint with a bound.
func (r *reader) atMost(most uint64, what string) uint64 {
	v := r.uvarint()
	if v > most {
		r.fail(fmt.Sprintf("%s %d is above %d", what, v, most))
		return 0
	}
	return v
}

// count reads the number of items that follow, each of at least size bytes, so
// that what it returns is safe to allocate for.
func (r *reader) count(size int, what string) int {
	return int(r.atMost(uint64(r.left()/size), what))
}

func (r *reader) text() string {
	n := r.uvarint()
	if r.bad != nil || n > uint64(r.left()) {
		r.fail("cut short")
		return ""
	}
	r.off += int(n)
	return r.in[r.off-int(n) : r.off]
}

func (r *reader) fixed64() uint64 {
	if r.bad != nil || r.left() < 8 {
		r.fail("cut short")
		return 0
	}
	var v uint64
	for range 8 {
		v = v<<8 | uint64(r.byte())
	}
	return v
}

// end reports the first fault; bytes that are left over are one.
func (r *reader) end() *fault {
	if r.bad == nil && r.left() > 0 {
		r.fail(fmt.Sprintf("%d bytes too many", r.left()))
	}
	return r.bad
}
