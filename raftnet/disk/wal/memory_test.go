package wal_test

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

const sector = 512

// memory is a folder on a disk that tells what is durable from what is not.
type memory struct {
	mu sync.Mutex
	// names are what a process sees, durable what is on the disk for sure, and changed
	// what was done to names since.
	names, durable map[string]*memoryFile
	changed        []func(map[string]*memoryFile)
	// before is called, if set, with the lock held, before anything is changed.
	before func(op string)
	// fail returns the error of an operation.
	fail func(op string) error
	// room is how many bytes may still be added to files; -1 for any.
	room int64
	// count is how often each operation was done.
	count map[string]int
}

type memoryFile struct {
	owner            *memory
	written, durable []byte
	closed           bool
}

func newMemory() *memory {
	return &memory{names: map[string]*memoryFile{}, durable: map[string]*memoryFile{}, room: -1, count: map[string]int{}}
}

// set changes how the disk behaves.
func (m *memory) set(change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// counted returns how often each operation was done.
func (m *memory) counted() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.count)
}

// crash returns what a machine that stops now may leave: of what is not durable any
// sectors and any names. The caller holds the lock, or is alone.
func (m *memory) crash(r *rand.Rand) *memory {
	names := maps.Clone(m.durable)
	for _, change := range m.changed {
		if r.IntN(2) == 0 {
			change(names)
		}
	}
	left := newMemory()
	for name, f := range names {
		left.put(name, f.crash(r))
	}
	return left
}

// copied returns what a process that stops now leaves.
func (m *memory) copied() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := newMemory()
	for name, f := range m.names {
		left.put(name, slices.Clone(f.written))
	}
	return left
}

func (m *memory) put(name string, content []byte) {
	f := &memoryFile{owner: m, written: slices.Clone(content), durable: slices.Clone(content)}
	m.names[name], m.durable[name] = f, f
}

func (f *memoryFile) crash(r *rand.Rand) []byte {
	left := slices.Clone(f.durable)
	if bytes.Equal(left, f.written) {
		return left
	}
	if len(f.written) != len(left) && r.IntN(2) == 0 {
		left = append(left, make([]byte, max(0, len(f.written)-len(left)))...)[:len(f.written)]
	}
	for at := 0; at < min(len(left), len(f.written)); at += sector {
		if end := min(at+sector, len(left), len(f.written)); r.IntN(2) == 0 {
			copy(left[at:end], f.written[at:end])
		}
	}
	return left
}

// begin is the beginning of an operation; the lock is held after it.
func (m *memory) begin(op string) error {
	m.mu.Lock()
	m.count[op]++
	if m.before != nil {
		m.before(op)
	}
	if m.fail != nil {
		return m.fail(op)
	}
	return nil
}

func (m *memory) rename(change func(map[string]*memoryFile)) {
	change(m.names)
	m.changed = append(m.changed, change)
}

func (m *memory) List() ([]string, error) {
	err := m.begin("list")
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.names)), err
}

func (m *memory) Create(name string) (wal.File, error) {
	err := m.begin("create")
	defer m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	f := &memoryFile{owner: m}
	m.rename(func(names map[string]*memoryFile) { names[name] = f })
	return f, nil
}

func (m *memory) Open(name string) (wal.File, error) {
	err := m.begin("open")
	defer m.mu.Unlock()
	f, ok := m.names[name]
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	f.closed = false
	return f, nil
}

func (m *memory) Rename(from, to string) error {
	err := m.begin("rename")
	defer m.mu.Unlock()
	if err != nil {
		return err
	}
	f := m.names[from]
	m.rename(func(names map[string]*memoryFile) {
		delete(names, from)
		names[to] = f
	})
	return nil
}

func (m *memory) Remove(name string) error {
	err := m.begin("remove")
	defer m.mu.Unlock()
	f, ok := m.names[name]
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	if m.room >= 0 {
		m.room += int64(len(f.written))
	}
	m.rename(func(names map[string]*memoryFile) { delete(names, name) })
	return nil
}

func (m *memory) Sync() error {
	err := m.begin("sync names")
	defer m.mu.Unlock()
	if err == nil {
		m.durable, m.changed = maps.Clone(m.names), nil
	}
	return err
}

func (f *memoryFile) ReadAt(b []byte, at int64) (int, error) {
	err := f.owner.begin("read")
	defer f.owner.mu.Unlock()
	if f.closed {
		err = fs.ErrClosed
	}
	if err != nil {
		return 0, err
	}
	n := 0
	if at < int64(len(f.written)) {
		n = copy(b, f.written[at:])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memoryFile) WriteAt(b []byte, at int64) (int, error) {
	err := f.owner.begin("write")
	defer f.owner.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if more := at + int64(len(b)) - int64(len(f.written)); more > 0 {
		if f.owner.room >= 0 {
			if more > f.owner.room {
				return 0, syscall.ENOSPC
			}
			f.owner.room -= more
		}
		f.written = append(f.written, make([]byte, more)...)
	}
	return copy(f.written[at:], b), nil
}

func (f *memoryFile) Sync() error {
	err := f.owner.begin("sync")
	defer f.owner.mu.Unlock()
	if err == nil {
		f.durable = slices.Clone(f.written)
	}
	return err
}

func (f *memoryFile) Size() (int64, error) {
	err := f.owner.begin("size")
	defer f.owner.mu.Unlock()
	return int64(len(f.written)), err
}

func (f *memoryFile) Close() error {
	f.owner.mu.Lock()
	defer f.owner.mu.Unlock()
	f.closed = true
	return nil
}
