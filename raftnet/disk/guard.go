package disk

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"syscall"
)

// What is done to the disk, as metrics and errors call it.
const (
	opWrite    = "write"
	opRoom     = "make room"
	opRead     = "read"
	opAppend   = "append"
	opDelete   = "delete"
	opLook     = "look for space"
	opSnapshot = "snapshot"
)

// guard is the medium as the stores get it. Each call is watched, a panic of what is
// behind it is an error, and an error closes the latch, after which nothing is written
// any more.
type guard struct {
	inner Medium
	// room makes sure that a change can be written without space on the disk; nil if
	// that is not known before.
	room     func(Change) error
	path     string
	latch    *latch
	watchdog *watchdog
	closed   atomic.Bool
	// broken is set once a call has panicked: what is behind may hold its locks for
	// ever, and is not called again.
	broken atomic.Bool
}

// Write also fails if the latch has closed while it ran: nothing is acknowledged
// after the first failure.
func (g *guard) Write(c Change) error {
	if err := g.latch.failure(); err != nil {
		return err
	}
	if err := g.call(opWrite, func() error { return g.inner.Write(c) }); err != nil {
		return err
	}
	return g.latch.failure()
}

// Read goes on after a failed write: what it returns is verified by the caller.
func (g *guard) Read(index uint64) (value []byte, err error) {
	err = g.call(opRead, func() error {
		value, err = g.inner.Read(index)
		return err
	})
	return value, err
}

// makeRoom makes sure that c can be written without space on the disk, if the medium can
// do that. It reports false if there is none; nothing has been touched then.
func (g *guard) makeRoom(c Change) (bool, error) {
	if g.room == nil {
		return true, nil
	}
	room := true
	err := g.call(opRoom, func() error {
		err := g.room(c)
		if errors.Is(err, syscall.ENOSPC) {
			room, err = false, nil
		}
		return err
	})
	return room, err
}

func (g *guard) call(op string, do func() error) error {
	if g.closed.Load() {
		return ErrClosed
	}
	if g.broken.Load() {
		return g.latch.failure()
	}
	end := g.watchdog.begin(op)
	panicked, err := protect(g.path, do)
	end()
	if panicked {
		g.broken.Store(true)
	}
	if err == nil {
		return nil
	}
	if g.closed.Load() {
		return ErrClosed
	}
	return g.latch.trip(op, err)
}

// protect does what uses the file at path, and makes a panic, or a fault in memory
// that is mapped from the file, a [*CorruptError].
func protect(path string, do func() error) (panicked bool, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if fault := recover(); fault != nil {
			panicked, err = true, &CorruptError{File: path, Place: "a page that was to be used", Problem: fmt.Sprint(fault)}
		}
	}()
	return false, do()
}

// Close waits for the calls in progress.
func (g *guard) Close() error {
	if g.closed.Swap(true) {
		return nil
	}
	if g.broken.Load() {
		return errors.New("the log is not closed, since it is damaged")
	}
	return g.inner.Close()
}
