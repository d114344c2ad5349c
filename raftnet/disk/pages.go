package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// pages reads a bbolt file without bbolt: each page in use once, each number in it
// checked before it is used. What passes is a file on which bbolt cannot stumble.
//
// A bbolt file, numbers in the machine's order, is pages of one size. A page begins
// with its id 8, flags 2, count 2, and 4 the number of pages that it goes on over.
// Pages 0 and 1 are metas, written in turn by transactions; the newer one has the
// root. A branch page has elements of position 4 (from the element on), key length 4
// and child page 8, a leaf page elements of flags 4, position 4, key length 4 and
// value length 4. The values of the root's leaves, flagged so, are buckets: root page
// 8, sequence 8 and, if the root page is 0, a leaf page of its own right there.
type pages struct {
	r    io.ReaderAt
	path string
	meta meta
	// seen are the pages that were met.
	seen []bool
}

type meta struct {
	pageSize uint64
	root     uint64
	// end is the page after the last one that was ever used.
	end         uint64
	transaction uint64
}

const (
	boltMagic     = 0xED0CDAED
	boltVersion   = 2
	pageHeader    = 16
	metaBytes     = 64
	elementBytes  = 16
	bucketHeader  = 16
	flagBranch    = 1
	flagLeaf      = 2
	elementBucket = 1
	minPageSize   = 1 << 10
	maxPageSize   = 1 << 24
	maxDepth      = 64
)

// visit gets each key and value of a bucket, ascending by key.
type visit func(bucket string, key, value []byte) error

// openPages reads the metas of a file of size bytes. Both have to be valid.
func openPages(r io.ReaderAt, path string, size int64) (*pages, error) {
	p := &pages{r: r, path: path}
	if size == 0 {
		return nil, p.corrupt("offset 0", "it is empty")
	}
	first, err := p.readMeta(0)
	if err != nil {
		return nil, err
	}
	second, err := p.readMeta(first.pageSize)
	if err != nil {
		return nil, err
	}
	p.meta = first
	if second.transaction > first.transaction {
		p.meta = second
	}
	if first.pageSize != second.pageSize || first.transaction+second.transaction != 2*p.meta.transaction-1 {
		return nil, p.corrupt("offset 0", "its two meta pages do not belong together")
	}
	if have := uint64(size) / p.meta.pageSize; p.meta.end < 4 || have < p.meta.end {
		return nil, p.corrupt(fmt.Sprintf("offset %d", size), fmt.Sprintf("it ends there, and was %d pages of %d bytes", p.meta.end, p.meta.pageSize))
	}
	p.seen = make([]bool, p.meta.end)
	return p, nil
}

func (p *pages) corrupt(place, problem string) error {
	return &CorruptError{File: p.path, Place: place, Problem: problem}
}

func (p *pages) corruptPage(id uint64, format string, args ...any) error {
	return p.corrupt(fmt.Sprintf("page %d (offset %d)", id, id*p.meta.pageSize), fmt.Sprintf(format, args...))
}

func (p *pages) readMeta(offset uint64) (meta, error) {
	place := fmt.Sprintf("offset %d", offset)
	var b [pageHeader + metaBytes]byte
	if err := p.read(b[:], offset); err != nil {
		return meta{}, err
	}
	m := b[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(m[:56])
	order := binary.NativeEndian
	switch {
	case order.Uint32(m) != boltMagic || order.Uint32(m[4:]) != boltVersion:
		return meta{}, p.corrupt(place, "it is not a log of leasenode")
	case sum.Sum64() != order.Uint64(m[56:]):
		return meta{}, p.corrupt(place, "the checksum of the meta page is another")
	}
	found := meta{pageSize: uint64(order.Uint32(m[8:])), root: order.Uint64(m[16:]), end: order.Uint64(m[40:]), transaction: order.Uint64(m[48:])}
	if found.pageSize < minPageSize || found.pageSize > maxPageSize {
		return meta{}, p.corrupt(place, "the size of its pages is impossible")
	}
	return found, nil
}

// read fills b. An end of the file is damage; another error is returned as it is.
func (p *pages) read(b []byte, offset uint64) error {
	_, err := p.r.ReadAt(b, int64(offset))
	if errors.Is(err, io.EOF) {
		return p.corrupt(fmt.Sprintf("offset %d", offset), "it ends there")
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", p.path, err)
	}
	return nil
}

// walk visits everything in the file, bucket after bucket.
func (p *pages) walk(do visit) error {
	return p.tree(span{page: p.meta.root}, func(e leafElement) error {
		if e.flags != elementBucket || len(e.value) < bucketHeader {
			return p.corruptPage(e.page, "what should be a bucket is none")
		}
		each := func(inner leafElement) error {
			if inner.flags != 0 {
				return p.corruptPage(inner.page, "an element has the flags %x", inner.flags)
			}
			return do(string(e.key), inner.key, inner.value)
		}
		if root := binary.NativeEndian.Uint64(e.value); root != 0 {
			return p.tree(span{page: root}, each)
		}
		inline := page{id: e.page, b: e.value[bucketHeader:]}
		if len(inline.b) < pageHeader || inline.number() != 0 || inline.flags() != flagLeaf {
			return p.corruptPage(e.page, "the bucket %q in it makes no sense", e.key)
		}
		return p.leaf(span{page: e.page}, inline, each)
	})
}

// span is a page and which keys can be under it: from low on, below high; nil for
// any.
type span struct {
	page      uint64
	low, high []byte
	depth     int
}

func (s span) has(key []byte) bool {
	return bytes.Compare(key, s.low) >= 0 && (s.high == nil || bytes.Compare(key, s.high) < 0)
}

type page struct {
	id uint64
	b  []byte
}

func (g page) number() uint64 { return binary.NativeEndian.Uint64(g.b) }
func (g page) flags() uint16  { return binary.NativeEndian.Uint16(g.b[8:]) }
func (g page) count() int     { return int(binary.NativeEndian.Uint16(g.b[10:])) }

// cut returns size bytes of the page from position on.
func (g page) cut(position, size uint64) ([]byte, bool) {
	if end := position + size; end <= uint64(len(g.b)) {
		return g.b[position:end:end], true
	}
	return nil, false
}

type leafElement struct {
	page       uint64
	flags      uint32
	key, value []byte
}

func (p *pages) load(id uint64) (page, error) {
	if id < 2 || id >= p.meta.end {
		return page{}, p.corruptPage(id, "it is used, and outside of the file")
	}
	g := page{id: id, b: make([]byte, p.meta.pageSize)}
	if err := p.read(g.b, id*p.meta.pageSize); err != nil {
		return page{}, err
	}
	more := uint64(binary.NativeEndian.Uint32(g.b[12:]))
	if g.number() != id || more >= p.meta.end-id {
		return page{}, p.corruptPage(id, "it is not the page that was written there")
	}
	for i := id; i <= id+more; i++ {
		if p.seen[i] {
			return page{}, p.corruptPage(i, "it is used twice")
		}
		p.seen[i] = true
	}
	if more > 0 {
		g.b = append(g.b, make([]byte, more*p.meta.pageSize)...)
		if err := p.read(g.b[p.meta.pageSize:], (id+1)*p.meta.pageSize); err != nil {
			return page{}, err
		}
	}
	return g, nil
}

func (p *pages) tree(at span, do func(leafElement) error) error {
	g, err := p.load(at.page)
	if err != nil {
		return err
	}
	switch {
	case g.flags() == flagLeaf:
		return p.leaf(at, g, do)
	case g.flags() == flagBranch && g.count() > 0 && at.depth < maxDepth:
		return p.branch(at, g, do)
	default:
		return p.corruptPage(g.id, "it is neither a branch nor a leaf")
	}
}

func (p *pages) branch(at span, g page, do func(leafElement) error) error {
	var children []span
	last := at.low
	for i := range g.count() {
		position := uint64(pageHeader + i*elementBytes)
		element, ok := g.cut(position, elementBytes)
		var key []byte
		if ok {
			key, ok = g.cut(position+uint64(binary.NativeEndian.Uint32(element)), uint64(binary.NativeEndian.Uint32(element[4:])))
		}
		if !ok || len(key) == 0 || !at.has(key) || i > 0 && bytes.Compare(last, key) >= 0 {
			return p.corruptPage(g.id, "element %d makes no sense", i)
		}
		if i > 0 {
			children[i-1].high = key
		}
		children = append(children, span{page: binary.NativeEndian.Uint64(element[8:]), low: key, high: at.high, depth: at.depth + 1})
		last = key
	}
	for _, child := range children {
		if err := p.tree(child, do); err != nil {
			return err
		}
	}
	return nil
}

func (p *pages) leaf(at span, g page, do func(leafElement) error) error {
	var last []byte
	for i := range g.count() {
		position := uint64(pageHeader + i*elementBytes)
		element, ok := g.cut(position, elementBytes)
		e := leafElement{page: g.id}
		if ok {
			e.flags = binary.NativeEndian.Uint32(element)
			start, key := position+uint64(binary.NativeEndian.Uint32(element[4:])), uint64(binary.NativeEndian.Uint32(element[8:]))
			var ok1, ok2 bool
			e.key, ok1 = g.cut(start, key)
			e.value, ok2 = g.cut(start+key, uint64(binary.NativeEndian.Uint32(element[12:])))
			ok = ok1 && ok2
		}
		if !ok || len(e.key) == 0 || !at.has(e.key) || i > 0 && bytes.Compare(last, e.key) >= 0 {
			return p.corruptPage(g.id, "element %d makes no sense", i)
		}
		if err := do(e); err != nil {
			return err
		}
		last = e.key
	}
	return nil
}
