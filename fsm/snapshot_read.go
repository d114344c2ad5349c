package fsm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/leasenode/leasenode/lease"
)

// loader takes what a snapshot has, in the order of its frames. Key and value are
// valid during the call only.
type loader interface {
	put(kind byte, key, value []byte) error
}

// readSnapshot reads a whole snapshot, checks all there is to check, and hands its
// records and operations to into. Only if the error is nil may what into has been
// given be used. Memory is bounded by the longest frame.
func readSnapshot(source io.Reader, into loader) (meta, error) {
	r := &frameReader{in: bufio.NewReaderSize(source, 64<<10), sum: sha256.New()}
	if err := r.header(); err != nil {
		return meta{}, err
	}
	c := &checker{r: r, into: into}
	for c.kind != frameEnd {
		kind, payload, err := r.frame()
		if err != nil {
			return meta{}, err
		}
		if err := c.take(kind, payload); err != nil {
			return meta{}, err
		}
	}
	return c.meta, r.trailer()
}

// frameReader takes frames off a snapshot and sums what it reads.
type frameReader struct {
	in      *bufio.Reader
	sum     hash.Hash
	off     int64
	payload []byte
}

// corrupt returns the fault at the byte that is read next.
func (r *frameReader) corrupt(format string, args ...any) error {
	return &CorruptSnapshotError{Offset: r.off, Problem: fmt.Sprintf(format, args...)}
}

func (r *frameReader) header() error {
	magic, err := r.bytes(len(snapshotMagic))
	if err != nil {
		return err
	}
	if string(magic) != snapshotMagic {
		return &CorruptSnapshotError{Problem: "it does not begin as a snapshot does"}
	}
	version, err := r.uvarint()
	if err != nil {
		return err
	}
	if version != snapshotVersion {
		return &UnknownSnapshotError{Version: version}
	}
	return nil
}

func (r *frameReader) frame() (kind byte, payload []byte, err error) {
	first, err := r.bytes(1)
	if err != nil {
		return 0, nil, err
	}
	kind = first[0]
	n, err := r.uvarint()
	if err != nil {
		return 0, nil, err
	}
	if n > maxFrameBytes {
		return 0, nil, r.corrupt("a frame of %d bytes", n)
	}
	payload, err = r.bytes(int(n))
	return kind, payload, err
}

// trailer compares the sum, which has to be the last thing there is.
func (r *frameReader) trailer() error {
	want := r.sum.Sum(nil)
	got, err := r.bytes(len(want))
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return r.corrupt("the checksum is %x, and %x was written", want, got)
	}
	switch _, err := r.in.ReadByte(); {
	case err == nil:
		return r.corrupt("something follows its end")
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("reading byte %d: %w", r.off, err)
	}
	return nil
}

// bytes reads n bytes, valid until the next call.
func (r *frameReader) bytes(n int) ([]byte, error) {
	if cap(r.payload) < n {
		r.payload = make([]byte, n)
	}
	b := r.payload[:n]
	read, err := io.ReadFull(r.in, b)
	r.off += int64(read)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, r.corrupt("cut short")
	}
	if err != nil {
		return nil, fmt.Errorf("reading byte %d: %w", r.off, err)
	}
	r.sum.Write(b)
	return b, nil
}

func (r *frameReader) uvarint() (uint64, error) {
	var encoded []byte
	for {
		c, err := r.bytes(1)
		if err != nil {
			return 0, err
		}
		encoded = append(encoded, c[0])
		if c[0] >= 0x80 && len(encoded) < binary.MaxVarintLen64 {
			continue
		}
		digits := &reader{in: string(encoded)}
		v := digits.uvarint()
		if f := digits.end(); f != nil {
			return 0, r.corrupt("%s", f.problem)
		}
		return v, nil
	}
}

// checker checks the frames of a snapshot, one after the other.
type checker struct {
	r    *frameReader
	into loader
	meta meta

	kind   byte   // of the frame before
	key    []byte // of the frame before, if of the same kind
	counts [frameEnd]uint64
	refs   [2]uint64
	sum    lanes
	buffer []byte
}

func (c *checker) take(kind byte, payload []byte) error {
	if kind < max(c.kind, frameMeta) || kind > frameEnd || (kind == frameMeta) != (c.kind == 0) {
		return c.r.corrupt("a frame of kind %d after one of kind %d", kind, c.kind)
	}
	if kind != c.kind {
		c.key = nil
	}
	c.kind = kind
	switch kind {
	case frameMeta:
		m, f := decodeMeta(string(payload))
		c.meta = m
		return c.inFrame(f)
	case frameRecord:
		return c.record(payload)
	case frameEnd:
		return c.end(payload)
	default:
		return c.references(payload)
	}
}

// inFrame returns f, a fault in the frame read last.
func (c *checker) inFrame(f *fault) error {
	if f == nil {
		return nil
	}
	return c.r.corrupt("in the frame of kind %d that ends here: %s", c.kind, f.Error())
}

// accept hands key and value on, if key is where it belongs.
func (c *checker) accept(key, value []byte) error {
	if c.key != nil && bytes.Compare(c.key, key) >= 0 {
		return c.r.corrupt("key %q after key %q", key, c.key)
	}
	c.key = append(c.key[:0], key...)
	if c.key == nil {
		c.key = []byte{}
	}
	c.counts[c.kind]++
	return c.into.put(c.kind, key, value)
}

func (c *checker) record(payload []byte) error {
	r := &reader{in: string(payload)}
	key := r.text()
	if r.bad != nil {
		return c.inFrame(r.bad)
	}
	s, err := decodeRecord(key, r.in[r.off:])
	if err == nil {
		err = c.meta.admits(s)
	}
	if err != nil {
		return c.r.corrupt("in the record that ends here: %v", err)
	}
	value := payload[r.off:]
	var hash lanes
	hash, c.buffer = recordHash(c.buffer, key, value)
	c.sum.add(hash)
	return c.accept(payload[r.off-len(key):r.off], value)
}

// admits returns an error if s cannot be a record of the state that m is of. What
// decodeRecord has looked at is not looked at again.
func (m meta) admits(s *stored) error {
	grant := lease.Mutation{
		Op: lease.OpAcquire, Key: s.record.Key, Owner: s.record.Owner, TTL: lease.MinTTL,
		RequestID: s.requestID, Attributes: s.record.Attributes,
	}
	if err := grant.Validate(); err != nil {
		return err
	}
	latest := s.history[len(s.history)-1]
	switch {
	case s.record.LeaseUntil > m.latestEnd:
		return &InvariantError{Key: s.record.Key, Problem: "it ends after the latest end"}
	case latest.position.Index > m.index || latest.at > m.now:
		return &InvariantError{Key: s.record.Key, Problem: "its history is later than the state"}
	case countOf(s.history, lease.OpAcquire) > m.settings.HistoryGrants || countOf(s.history, lease.OpRenew) > m.settings.HistoryRenewals:
		return &InvariantError{Key: s.record.Key, Problem: "its history is longer than the bounds"}
	}
	return nil
}

func (c *checker) references(payload []byte) error {
	if len(payload) < 8 {
		return c.r.corrupt("a frame of kind %d without a log index", c.kind)
	}
	key, value := payload[:8], payload[8:]
	references, f := decodeReferences(string(value))
	if f != nil {
		return c.inFrame(f)
	}
	if index := binary.BigEndian.Uint64(key); index > c.meta.index {
		return c.r.corrupt("operations of log index %d in a state of index %d", index, c.meta.index)
	}
	c.refs[c.kind-frameLifecycle] += uint64(len(references))
	return c.accept(key, value)
}

func (c *checker) end(payload []byte) error {
	r := &reader{in: string(payload)}
	for _, kind := range []byte{frameRecord, frameLifecycle, frameRenewals} {
		if n := r.uvarint(); n != c.counts[kind] {
			r.fail(fmt.Sprintf("%d frames of kind %d were written, and there are %d", n, kind, c.counts[kind]))
		}
	}
	if f := r.end(); f != nil {
		return c.inFrame(f)
	}
	if c.counts[frameRecord] != c.meta.keys || c.refs != c.meta.references || c.sum != c.meta.sum {
		return c.r.corrupt("the state before here is not the one that the meta value tells of")
	}
	return nil
}
