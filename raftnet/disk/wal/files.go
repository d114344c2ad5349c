package wal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
)

// Files is the folder of a log: everything that is done to the disk passes it.
type Files interface {
	// List returns the names of all that is there.
	List() ([]string, error)
	// Create makes an empty file; it replaces one of that name.
	Create(name string) (File, error)
	// Open opens a file that is there.
	Open(name string) (File, error)
	// Rename replaces a file that has the name already.
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes the names durable.
	Sync() error
}

// File is one file of a log. It is safe for concurrent use.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Sync makes durable what was written, and the size.
	Sync() error
	Size() (int64, error)
	Close() error
}

// ErrInUse says that another process, or another part of this one, has the log open.
var ErrInUse = errors.New("the log is in use")

// Dir is a folder on a real disk.
type Dir struct {
	path string
	flag int
	lock *os.File
}

// OpenDir opens the folder at path for one who writes, and keeps all others out until
// it is closed. If they are there already, the error is [ErrInUse].
func OpenDir(path string) (*Dir, error) {
	d := &Dir{path: path, flag: os.O_RDWR}
	return d, d.acquire(lockExclusive)
}

// ViewDir opens the folder at path for one who only reads. It keeps those out who
// write.
func ViewDir(path string) (*Dir, error) {
	d := &Dir{path: path, flag: os.O_RDONLY}
	return d, d.acquire(lockShared)
}

// MakeDir makes the folder at path, which nobody knows of yet: it is not locked.
func MakeDir(path string) (*Dir, error) {
	return &Dir{path: path, flag: os.O_RDWR}, os.Mkdir(path, 0o700)
}

// acquire locks the mark. A log without one is damaged, and is not opened anyway.
func (d *Dir) acquire(lock func(*os.File) error) error {
	f, err := os.Open(filepath.Join(d.path, MarkName))
	if errors.Is(err, os.ErrNotExist) {
		_, err = os.Stat(d.path)
		return err
	}
	if err != nil {
		return err
	}
	if err := lock(f); err != nil {
		return errors.Join(err, f.Close())
	}
	d.lock = f
	return nil
}

// Close lets others in.
func (d *Dir) Close() error {
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

// List returns the names of all that is in the folder.
func (d *Dir) List() ([]string, error) {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// Create makes an empty file.
func (d *Dir) Create(name string) (File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Open opens a file.
func (d *Dir) Open(name string) (File, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), d.flag, 0)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// Rename gives a file another name.
func (d *Dir) Rename(from, to string) error {
	return os.Rename(filepath.Join(d.path, from), filepath.Join(d.path, to))
}

// Remove removes a file.
func (d *Dir) Remove(name string) error { return os.Remove(filepath.Join(d.path, name)) }

// Sync makes the names durable.
func (d *Dir) Sync() error {
	f, err := os.Open(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return syncData(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
