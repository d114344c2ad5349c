package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Log is a log that is written to. One Append, Room or Drop runs at a time; Read and
// Bytes run beside them and each other.
type Log struct {
	files    Files
	markFile File
	id       uint64

	// block is where the next record belongs in the last of live; follows is the record
	// before it.
	block   uint32
	follows link
	// batch is what the last record was encoded in.
	batch []byte

	// making is held by whoever makes a segment, or takes one that was made.
	making sync.Mutex
	mu     sync.RWMutex
	// live are the segments that may have records, ascending, ahead those that are ready
	// for more. Both change only under mu, and at their common end only under making.
	live, ahead []*segment
	// unused is the first segment that has to stay.
	unused atomic.Uint32

	// newest is the last record that is durable.
	newest atomic.Pointer[link]
	// failed is the first failure, after which nothing is written.
	failed atomic.Pointer[error]

	prepare, marked, stop chan struct{}
	joined                sync.WaitGroup
}

const (
	// markDelay is how far the mark is behind at most.
	markDelay = 200 * time.Millisecond
	// reserveBlocks is what [Log.Room] leaves in a segment to those who do not ask.
	reserveBlocks  = 32
	maxRecordBytes = 1 << 30
	// keptBatch bounds the buffer that is kept from record to record.
	keptBatch = 1 << 20
)

// Create makes a log with one record in the empty folder files, and returns when it is
// durable. It then has to be opened.
func Create(files Files, payload []byte) error {
	id := rand.Uint64() // distinguishes logs from each other, and keeps no secret
	parts := partsFor(len(payload))
	g, err := makeSegment(files, id, 1, max(minBlocks, parts+1))
	if err != nil {
		return err
	}
	raw, sum := encodeRecord(nil, g.seed, 1, link{}, payload)
	_, err = g.file.WriteAt(raw, blockBytes)
	if err == nil {
		err = g.file.Sync()
	}
	if err = errors.Join(err, g.file.Close()); err != nil {
		return fmt.Errorf("write the first record: %w", err)
	}
	f, err := files.Create(MarkName)
	if err != nil {
		return fmt.Errorf("make the mark: %w", err)
	}
	_, err = f.WriteAt(mark{id, link{1, sum}}.encode(), 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close(), files.Sync()); err != nil {
		return fmt.Errorf("make the mark: %w", err)
	}
	return nil
}

// Open goes on with a log that was looked at, and takes over what v has; v must not be
// used again. What a crash left of a record is zeroed. It refuses a damaged log, and
// closes it then.
func Open(v *View) (*Log, error) {
	if v.Damage != nil {
		return nil, errors.Join(v.Damage, v.Close())
	}
	if err := v.repair(); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	l := &Log{
		files: v.files, markFile: v.markFile, id: v.mark.id, block: v.end.block, follows: v.follows,
		live: slices.Clone(v.segments[:v.end.segment+1]), ahead: slices.Clone(v.segments[v.end.segment+1:]),
		prepare: make(chan struct{}, 1), marked: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	l.newest.Store(&v.follows)
	signal(l.prepare)
	l.joined.Go(l.prepareLoop)
	l.joined.Go(l.markLoop)
	return l, nil
}

// repair zeroes a record that was never finished and removes what was never named.
func (v *View) repair() error {
	if v.torn != nil {
		g := v.segments[v.torn.at.segment]
		_, err := g.file.WriteAt(make([]byte, int64(v.torn.parts)*blockBytes), int64(v.torn.at.block)*blockBytes)
		if err == nil {
			err = g.file.Sync()
		}
		if err != nil {
			return fmt.Errorf("remove an unfinished record: %w", err)
		}
	}
	names, err := v.files.List()
	if err != nil {
		return fmt.Errorf("list the segments: %w", err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, unfinishedSuffix) {
			if err := v.files.Remove(name); err != nil {
				return fmt.Errorf("remove an unfinished segment: %w", err)
			}
		}
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// fail notes the first failure and returns it.
func (l *Log) fail(err error) error {
	l.failed.CompareAndSwap(nil, &err)
	return *l.failed.Load()
}

// Append writes a record and returns where its payload begins when it is durable. After
// an error it may have been written or not, and nothing is written any more.
func (l *Log) Append(payload []byte) (Position, error) {
	if err := l.failed.Load(); err != nil {
		return Position{}, *err
	}
	if len(payload) > maxRecordBytes {
		return Position{}, l.fail(fmt.Errorf("a record has %d bytes, and may have %d", len(payload), maxRecordBytes))
	}
	if err := l.turn(partsFor(len(payload))); err != nil {
		return Position{}, l.fail(err)
	}
	g := l.current()
	raw, sum := encodeRecord(l.batch[:0], g.seed, l.block, l.follows, payload)
	if l.batch = raw; cap(raw) > keptBatch {
		l.batch = nil
	}
	_, err := g.file.WriteAt(raw, int64(l.block)*blockBytes)
	if err == nil {
		err = g.file.Sync()
	}
	if err != nil {
		return Position{}, l.fail(fmt.Errorf("write %s: %w", segmentName(g.number), err))
	}
	at := Position{g.number, l.block*contentBytes + recordHeader}
	l.block += uint32(len(raw) / blockBytes)
	l.follows = link{l.follows.number + 1, sum}
	follows := l.follows
	l.newest.Store(&follows)
	signal(l.marked)
	return at, nil
}

// current returns the segment that is written to.
func (l *Log) current() *segment {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.live[len(l.live)-1]
}

// Read returns size bytes of a payload, from at on; the error is [fs.ErrNotExist] if the
// segment was dropped.
func (l *Log) Read(at Position, size int) ([]byte, error) {
	l.mu.RLock()
	i := int(at.Segment) - int(l.live[0].number)
	if i < 0 || i >= len(l.live) {
		l.mu.RUnlock()
		return nil, fs.ErrNotExist
	}
	g := l.live[i]
	l.mu.RUnlock()
	b, err := g.read(at.Offset, size)
	if errors.Is(err, fs.ErrClosed) {
		return nil, fs.ErrNotExist
	}
	return b, err
}

// Bytes returns the size of all segments.
func (l *Log) Bytes() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	size := int64(0)
	for _, list := range [][]*segment{l.live, l.ahead} {
		for _, g := range list {
			size += int64(g.blocks) * blockBytes
		}
	}
	return size
}

// Close waits for what runs beside, brings the mark up to date, and closes the files.
func (l *Log) Close() error {
	close(l.stop)
	l.joined.Wait()
	errs := []error{l.writeMark(), l.markFile.Close()}
	for _, g := range append(l.live, l.ahead...) {
		errs = append(errs, g.file.Close())
	}
	return errors.Join(errs...)
}
