package wal

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

// turn goes on to the next segment if the current one has no room for parts blocks.
func (l *Log) turn(parts uint32) error {
	if parts <= l.current().blocks-l.block {
		return nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	if err := l.makeLocked(parts); err != nil {
		return err
	}
	l.mu.Lock()
	l.live, l.ahead = append(l.live, l.ahead[0]), l.ahead[1:]
	l.mu.Unlock()
	l.block = 1
	signal(l.prepare)
	return nil
}

// Room makes sure that a record of size bytes can be written without space on the disk,
// and some short ones after it. If it fails nothing has changed and the log goes on.
func (l *Log) Room(size int) error {
	parts := partsFor(size)
	if parts+reserveBlocks <= l.current().blocks-l.block {
		return nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	return l.makeLocked(parts)
}

// makeLocked makes the next segment, unless there is one in which a record of parts
// blocks has room, and some short ones. Where the disk is too full for one of the usual size it makes
// one that just does.
func (l *Log) makeLocked(parts uint32) error {
	need := 1 + parts + reserveBlocks
	l.mu.RLock()
	last := l.live[len(l.live)-1]
	var next *segment
	if len(l.ahead) > 0 {
		next = l.ahead[0]
	}
	l.mu.RUnlock()
	if next != nil && next.blocks >= need {
		return nil
	}
	usual := max(need, min(maxBlocks, max(minBlocks, 2*last.blocks)))
	made, err := makeSegment(l.files, l.id, last.number+1, usual)
	if least := max(need, minBlocks); errors.Is(err, syscall.ENOSPC) && least < usual {
		made, err = makeSegment(l.files, l.id, last.number+1, least)
	}
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if next == nil {
		l.ahead = append(l.ahead, made)
		return nil
	}
	l.ahead[0] = made
	return next.file.Close()
}

// Drop says that no record in a segment before the given one is needed any more. They are
// removed beside, in order, but never the current one.
func (l *Log) Drop(before uint32) {
	if before > l.unused.Load() {
		l.unused.Store(before)
		signal(l.prepare)
	}
}

// prepareLoop makes segments ahead and removes old ones. What fails is tried again, by
// whoever then needs it.
func (l *Log) prepareLoop() {
	for {
		select {
		case <-l.stop:
			return
		case <-l.prepare:
		}
		l.making.Lock()
		_ = l.makeLocked(0)
		l.making.Unlock()
		for l.removeOldest() {
		}
	}
}

// removeOldest removes the oldest segment if it is not needed, and reports whether there
// may be more. Each removal is durable before the next, so that no hole can come about.
func (l *Log) removeOldest() bool {
	l.mu.Lock()
	g := l.live[0]
	if len(l.live) == 1 || g.number >= l.unused.Load() {
		l.mu.Unlock()
		return false
	}
	l.live = l.live[1:]
	l.mu.Unlock()
	err := errors.Join(l.files.Remove(segmentName(g.number)), l.files.Sync(), g.file.Close())
	if err != nil {
		_ = l.fail(fmt.Errorf("remove %s: %w", segmentName(g.number), err))
	}
	return err == nil
}

// markLoop writes the mark some time after a record.
func (l *Log) markLoop() {
	for {
		select {
		case <-l.stop:
			return
		case <-l.marked:
		}
		timer := time.NewTimer(markDelay)
		select {
		case <-l.stop:
			timer.Stop()
			return
		case <-timer.C:
		}
		if err := l.writeMark(); err != nil {
			return
		}
	}
}

// writeMark notes the newest record. That it cannot is a failure like any other.
func (l *Log) writeMark() error {
	if err := l.failed.Load(); err != nil {
		return nil
	}
	_, err := l.markFile.WriteAt(mark{l.id, *l.newest.Load()}.encode(), 0)
	if err == nil {
		err = l.markFile.Sync()
	}
	if err != nil {
		return l.fail(fmt.Errorf("write %s: %w", MarkName, err))
	}
	return nil
}
