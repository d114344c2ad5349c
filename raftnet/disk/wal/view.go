package wal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
)

// DamageError says that a file is not what was written.
type DamageError struct {
	// Name is the name of the file.
	Name string
	// Offset is where in it, -1 if it is the file as a whole.
	Offset int64
	// Problem is what is wrong there.
	Problem string
}

func (e *DamageError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", e.Name, e.Problem)
	}
	return fmt.Sprintf("%s at offset %d: %s", e.Name, e.Offset, e.Problem)
}

// Position is where the payload of a record begins, or anything in it: Offset counts
// the contents of the blocks of a segment.
type Position struct{ Segment, Offset uint32 }

// Record is a record as it is visited.
type Record struct {
	// Number counts the records, from 1 on.
	Number uint64
	// At is where the payload begins.
	At      Position
	Payload []byte
}

// Visit gets each whole record, in order. It may keep nothing of it.
type Visit func(Record) error

// View is a log of which all was read once. It changes nothing. Its methods must not be
// called once [Open] has got it.
type View struct {
	// Damage is the first that was found, nil if all is right.
	Damage *DamageError
	// Newest says that the last record that was visited is surely the newest that the
	// log had.
	Newest bool

	files    Files
	markFile File
	mark     mark
	// segments are those that are what they should be, ascending.
	segments []*segment
	// end is where the next record belongs, and follows is the last whole one.
	end     end
	follows link
	// torn is a record that was never finished.
	torn *tear
}

// end is a block of a segment, which is an index of segments.
type end struct {
	segment int
	block   uint32
}

// tear is what a crash left of a record.
type tear struct {
	at    end
	parts uint32
}

// Look reads and verifies all of the log in files and visits its records. After damage
// it goes on with what is right. The error is of the disk or of visit.
func Look(files Files, visit Visit) (*View, error) {
	v := &View{files: files}
	s := &scan{View: v, visit: visit}
	for _, step := range []func() error{s.readMark, s.openSegments, s.readSegments} {
		if err := step(); err != nil {
			return nil, errors.Join(err, v.Close())
		}
	}
	s.finish()
	return v, nil
}

// Read returns size bytes of a payload, from at on.
func (v *View) Read(at Position, size int) ([]byte, error) {
	i, ok := slices.BinarySearchFunc(v.segments, at.Segment, func(g *segment, number uint32) int { return int(g.number) - int(number) })
	if !ok {
		return nil, fs.ErrNotExist
	}
	return v.segments[i].read(at.Offset, size)
}

// Close closes the files.
func (v *View) Close() error {
	var errs []error
	if v.markFile != nil {
		errs = append(errs, v.markFile.Close())
	}
	for _, g := range v.segments {
		errs = append(errs, g.file.Close())
	}
	return errors.Join(errs...)
}

// readMark reads the mark, which has the log's id.
func (s *scan) readMark() error {
	f, err := s.files.Open(MarkName)
	if errors.Is(err, fs.ErrNotExist) {
		s.damaged(MarkName, -1, "it is missing")
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	s.markFile = f
	b := make([]byte, blockBytes)
	size, err := f.Size()
	if err == nil && size == blockBytes {
		_, err = f.ReadAt(b, 0)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", MarkName, err)
	}
	var ok bool
	if s.mark, ok = decodeMark(b); !ok || size != blockBytes {
		s.damaged(MarkName, 0, "it is not what was written")
	}
	return nil
}

// openSegments opens the segments and verifies what they say of themselves. Without a
// mark nothing can be said of them.
func (s *scan) openSegments() error {
	if s.Damage != nil {
		return nil
	}
	names, err := s.files.List()
	if err != nil {
		return fmt.Errorf("list the segments: %w", err)
	}
	var numbers []uint32
	for _, name := range names {
		if number, ok := parseSegment(name); ok {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	for i, number := range numbers {
		if i > 0 && number != numbers[i-1]+1 {
			s.damaged(segmentName(numbers[i-1]+1), -1, "it is missing")
			s.partial = true
		}
		if err := s.openSegment(number); err != nil {
			return err
		}
	}
	return nil
}

func (s *scan) openSegment(number uint32) error {
	name := segmentName(number)
	f, err := s.files.Open(name)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	b := make([]byte, blockBytes)
	_, err = f.ReadAt(b, 0)
	size, err2 := f.Size()
	if err = errors.Join(err, err2); err != nil && !errors.Is(err, io.EOF) {
		return errors.Join(fmt.Errorf("read %s: %w", name, err), f.Close())
	}
	blocks, ok := decodeSegment(s.mark.id, number, b)
	switch {
	case !ok:
		s.damaged(name, 0, "it is not a segment of this log")
		s.partial = true
		return f.Close()
	case size != int64(blocks)*blockBytes:
		s.damaged(name, min(size, int64(blocks)*blockBytes), fmt.Sprintf("it has %d bytes and had %d", size, int64(blocks)*blockBytes))
		s.partial = true
		if blocks = uint32(min(size/blockBytes, int64(blocks), math.MaxUint32)); blocks == 0 {
			return f.Close()
		}
	}
	s.segments = append(s.segments, &segment{number: number, blocks: blocks, seed: seedOf(s.mark.id, number), file: f})
	return nil
}
