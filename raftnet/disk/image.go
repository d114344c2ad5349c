package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// image is what a file was found to hold.
type image struct {
	// head is nil until it was found.
	head *head
	// verified is the index up to which the entries are right, 0 if none is.
	verified uint64
	// lastTerm is the term of the entry at verified.
	lastTerm uint64

	path        string
	transaction uint64
	sum         uint32 // of the entry at verified, or of the one before the first
}

// scanFile reads and verifies everything in the file at path, while no other process
// has it open, and changes nothing. With an error the image has what came before the
// damage.
func scanFile(path string) (*image, error) {
	f, err := os.Open(path)
	if err != nil {
		return &image{}, fmt.Errorf("open the log: %w", err)
	}
	img, err := scanOpened(f, path)
	return img, errors.Join(err, f.Close())
}

func scanOpened(f *os.File, path string) (*image, error) {
	if err := lockShared(f); err != nil {
		return &image{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return &image{}, fmt.Errorf("look at the log: %w", err)
	}
	p, err := openPages(f, path, info.Size())
	if err != nil {
		return &image{}, err
	}
	img := &image{path: path, transaction: p.meta.transaction}
	if err := p.walk(img.take); err != nil {
		return img, err
	}
	return img, img.finish()
}

// take is a visit.
func (m *image) take(bucket string, key, value []byte) error {
	switch {
	case bucket == headBucket && string(key) == headKey:
		h, err := openSeal(m.transaction, value)
		if err != nil {
			return m.corrupt("its head", err.Error())
		}
		return m.begin(h)
	case bucket == logBucket && len(key) == 8:
		return m.takeEntry(binary.BigEndian.Uint64(key), value)
	default:
		return m.corrupt("its buckets", fmt.Sprintf("there is a key in %q that was never written", bucket))
	}
}

// begin takes in the head.
func (m *image) begin(h *head) error {
	if h.last < h.first || (h.first == 0) != (h.last == 0) {
		return m.corrupt("its head", "the range of the log is impossible")
	}
	m.head, m.sum = h, h.before
	return nil
}

func (m *image) takeEntry(index uint64, value []byte) error {
	if m.head == nil {
		return m.corrupt("its head", "there is none")
	}
	expected := m.next()
	if index != expected {
		return m.corruptEntry(min(index, expected), fmt.Sprintf("entry %d is where %d should be; the log is %d to %d", index, expected, m.head.first, m.head.last))
	}
	if index > m.head.last {
		return m.corruptEntry(index, fmt.Sprintf("the log ends at %d", m.head.last))
	}
	if err := verifyEntry(index, value); err != nil {
		return m.corruptEntry(index, err.Error())
	}
	if entryPrevious(value) != m.sum {
		return m.corruptEntry(index, "it does not follow on the entry before it")
	}
	m.verified, m.sum, m.lastTerm = index, entrySum(value), binary.BigEndian.Uint64(value[8:])
	return nil
}

// next is the index of the entry that has to come.
func (m *image) next() uint64 {
	if m.verified == 0 {
		return m.head.first
	}
	return m.verified + 1
}

// finish looks whether anything is missing at the end.
func (m *image) finish() error {
	switch {
	case m.head == nil:
		return m.corrupt("its head", "there is none")
	case m.verified != m.head.last:
		return m.corruptEntry(m.next(), fmt.Sprintf("it is missing; the log is %d to %d", m.head.first, m.head.last))
	case m.sum != m.head.sum:
		return m.corruptEntry(m.head.last, "it is not the last entry that was written")
	}
	return nil
}

func (m *image) corrupt(place, problem string) error {
	return &CorruptError{File: m.path, Place: place, Problem: problem}
}

func (m *image) corruptEntry(index uint64, problem string) error {
	return corruptEntry(m.path, index, problem)
}

func corruptEntry(path string, index uint64, problem string) *CorruptError {
	return &CorruptError{File: path, Place: fmt.Sprintf("entry %d", index), Index: index, Problem: problem}
}
