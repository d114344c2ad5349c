package workload

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// Resource is what owners of keys write to. It remembers the highest token of each key
// and refuses a lower one, which is all that fencing asks of it.
type Resource interface {
	// Write decides about an attempt, whose Holder, Key and Token are given, and returns
	// it with the rest filled in; or [ErrBusy] if it could not decide in time.
	Write(attempt history.Write) (history.Write, error)
}

// ErrBusy says that a resource has not even looked at an attempt.
var ErrBusy = errors.New("the resource is busy")

// MemoryResource is a [Resource] for holders in one process.
type MemoryResource struct {
	now  func() time.Duration
	mu   sync.Mutex
	keys map[string]ledgerEnd
}

// ledgerEnd is what a resource has to remember of a key.
type ledgerEnd struct {
	seq     int
	highest uint64
}

// NewMemoryResource returns an empty resource that dates its decisions with now.
func NewMemoryResource(now func() time.Duration) *MemoryResource {
	return &MemoryResource{now: now, keys: map[string]ledgerEnd{}}
}

// Write implements [Resource].
func (r *MemoryResource) Write(attempt history.Write) (history.Write, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := r.keys[attempt.Key]
	attempt = end.decide(attempt, r.now())
	r.keys[attempt.Key] = end.after(attempt)
	return attempt, nil
}

func (end ledgerEnd) decide(attempt history.Write, now time.Duration) history.Write {
	attempt.Seq, attempt.At = end.seq+1, now
	attempt.Accepted = attempt.Token >= end.highest
	return attempt
}

func (end ledgerEnd) after(attempt history.Write) ledgerEnd {
	return ledgerEnd{seq: attempt.Seq, highest: max(end.highest, attempt.Token)}
}

// FileResource is a [Resource] for processes of one machine: a file for each key, to
// which every attempt is appended under a lock of the file. A line of it is
//
//	SEQ HIGHEST TOKEN accepted|refused AT HOLDER
//
// where HIGHEST is the highest token so far. It is not fsynced: it has to survive the
// processes that write to it, not the machine.
type FileResource struct {
	dir string
	now func() time.Duration
}

// lockTimeout bounds the wait for the lock: a process that was stopped may have it.
const lockTimeout = 200 * time.Millisecond

// NewFileResource returns the resource whose files are in dir, which has to exist. It
// dates its decisions with now.
func NewFileResource(dir string, now func() time.Duration) *FileResource {
	return &FileResource{dir: dir, now: now}
}

// Write implements [Resource].
func (r *FileResource) Write(attempt history.Write) (w history.Write, err error) {
	path := filepath.Join(r.dir, hex.EncodeToString([]byte(attempt.Key)))
	lock := flock.New(path + ".lock")
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	if _, err := lock.TryLockContext(ctx, time.Millisecond); err != nil {
		if ctx.Err() != nil {
			err = ErrBusy
		}
		return attempt, errors.Join(err, lock.Close())
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return attempt, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	end, size, err := lastOf(file)
	if err != nil {
		return attempt, err
	}
	attempt = end.decide(attempt, r.now())
	word := map[bool]string{true: accepted, false: refused}[attempt.Accepted]
	line := fmt.Sprintf("%d %d %d %s %d %s\n", attempt.Seq, end.after(attempt).highest, attempt.Token, word, attempt.At, attempt.Holder)
	_, err = file.WriteAt([]byte(line), size)
	return attempt, err
}

// lastOf returns what the last whole line of file says, and where that line ends: a
// writer that was killed can have left half a line, which is written over.
func lastOf(file *os.File) (ledgerEnd, int64, error) {
	const longest = 1024 // an owner has 256 bytes at most
	info, err := file.Stat()
	if err != nil {
		return ledgerEnd{}, 0, err
	}
	from := max(0, info.Size()-2*longest)
	tail := make([]byte, info.Size()-from)
	if _, err := file.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return ledgerEnd{}, 0, err
	}
	last := bytes.LastIndexByte(tail, '\n')
	if last < 0 {
		return ledgerEnd{}, from, nil
	}
	line := tail[bytes.LastIndexByte(tail[:last], '\n')+1 : last]
	var end ledgerEnd
	if _, err := fmt.Sscan(string(line), &end.seq, &end.highest); err != nil {
		return ledgerEnd{}, 0, fmt.Errorf("the resource %s has the line %q, which is none of its own", file.Name(), line)
	}
	return end, from + int64(last) + 1, nil
}
