package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

// WALDir is the folder in a data directory that has the log and the vote, if they are
// kept in files that are appended to.
const WALDir = "wal"

// walMedium is the medium on the files of package wal: a change is a record.
type walMedium struct {
	dir *wal.Dir
	log *wal.Log

	// calls is held for reading by each call, for writing by Close.
	calls  sync.RWMutex
	closed bool
	// record is what the last change was encoded in.
	record []byte

	mu    sync.RWMutex
	index *walIndex
}

// keptRecord bounds the buffer that is kept from change to change.
const keptRecord = 1 << 20

// openWAL verifies and opens the log in the folder at path.
func openWAL(path string) (*opened, error) {
	dir, err := wal.OpenDir(path)
	if err != nil {
		return nil, walInUse(path, err)
	}
	index := &walIndex{}
	view, err := wal.Look(dir, index.visit)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("read %s: %w", path, err), dir.Close())
	}
	img, err := imageOf(path, view, index)
	if err != nil {
		return nil, errors.Join(err, view.Close(), dir.Close())
	}
	log, err := wal.Open(view)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), dir.Close())
	}
	m := &walMedium{dir: dir, log: log, index: index}
	log.Drop(index.needed())
	return &opened{medium: m, path: path, image: img, room: m.room, bytes: log.Bytes}, nil
}

func walInUse(path string, err error) error {
	if errors.Is(err, wal.ErrInUse) {
		return &inUseError{path}
	}
	return fmt.Errorf("open %s: %w", path, err)
}

// buildWAL makes the folder with an empty log, and then what fill writes.
func buildWAL(path string, fill filler) error {
	dir, err := wal.MakeDir(path)
	if err != nil {
		return err
	}
	record, _ := encodeChange(nil, Change{Head: (&head{}).encode()})
	if err := wal.Create(dir, record); err != nil {
		return err
	}
	o, err := openWAL(path)
	if err != nil {
		return err
	}
	return errors.Join(fill(o.medium.Write), o.medium.Close())
}

// scanWAL reads and verifies everything in the folder at path, while no other process has
// it open, and changes nothing.
func scanWAL(path string) (*image, error) {
	dir, err := wal.ViewDir(path)
	if err != nil {
		return &image{}, walInUse(path, err)
	}
	index := &walIndex{}
	view, err := wal.Look(dir, index.visit)
	if err != nil {
		return &image{}, errors.Join(fmt.Errorf("read %s: %w", path, err), dir.Close())
	}
	img, err := imageOf(path, view, index)
	return img, errors.Join(err, view.Close(), dir.Close())
}

// imageOf verifies the entries of a log whose records were read. The head is in the image
// only if it is surely the newest; entries that damage has taken are told of before the
// damage itself, for the first of them says what is left.
func imageOf(path string, view *wal.View, index *walIndex) (*image, error) {
	img := &image{path: path}
	var damage *CorruptError
	if d := view.Damage; d != nil {
		damage = &CorruptError{File: filepath.Join(path, d.Name), Place: "its folder", Problem: d.Problem}
		if d.Offset >= 0 {
			damage.Place = fmt.Sprintf("offset %d", d.Offset)
		}
		if !view.Newest {
			return img, damage
		}
	}
	if err := img.begin(index.head); err != nil {
		return img, err
	}
	for i := index.head.first; i > 0 && i <= index.head.last; i++ {
		p, ok := index.find(i)
		if !ok {
			return img, missing(img, i, damage)
		}
		value, err := view.Read(p.at, int(p.length))
		if err != nil {
			return img, fmt.Errorf("read entry %d in %s: %w", i, path, err)
		}
		if err := img.takeEntry(i, value); err != nil {
			return img, err
		}
	}
	if damage != nil {
		return img, damage
	}
	return img, img.finish()
}

// missing says that an entry is, and if damage was found, where.
func missing(img *image, index uint64, damage *CorruptError) error {
	c := corruptEntry(img.path, index, fmt.Sprintf("it is missing; the log is %d to %d", img.head.first, img.head.last))
	if damage != nil {
		c.File, c.Problem = damage.File, fmt.Sprintf("%s (%s)", damage.Problem, damage.Place)
	}
	return c
}

// Write does c in one record: one write and one fdatasync.
func (m *walMedium) Write(c Change) error {
	m.calls.RLock()
	defer m.calls.RUnlock()
	if m.closed {
		return ErrClosed
	}
	record, starts := encodeChange(m.record[:0], c)
	if m.record = record; cap(record) > keptRecord {
		m.record = nil
	}
	at, err := m.log.Append(record)
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.index.take(c, at, starts)
	needed := m.index.needed()
	m.mu.Unlock()
	m.log.Drop(needed)
	return nil
}

// room makes sure that c can be written without space on the disk.
func (m *walMedium) room(c Change) error {
	m.calls.RLock()
	defer m.calls.RUnlock()
	if m.closed {
		return ErrClosed
	}
	return m.log.Room(sizeOfChange(c))
}

func (m *walMedium) Read(index uint64) ([]byte, error) {
	m.calls.RLock()
	defer m.calls.RUnlock()
	if m.closed {
		return nil, ErrClosed
	}
	m.mu.RLock()
	p, ok := m.index.find(index)
	m.mu.RUnlock()
	if !ok {
		return nil, nil
	}
	value, err := m.log.Read(p.at, int(p.length))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it was deleted meanwhile
	}
	return value, err
}

func (m *walMedium) Close() error {
	m.calls.Lock()
	defer m.calls.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	return errors.Join(m.log.Close(), m.dir.Close())
}
