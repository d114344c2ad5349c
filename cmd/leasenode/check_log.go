package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// logCopy is a copy of a node's log, opened as the node would open the log itself,
// which may write to it.
type logCopy struct {
	stores *disk.Stores
	// first and last are its range, both 0 if it is empty.
	first, last uint64
	// terms are the terms of its entries.
	terms []termRun
}

// termRun says that the entries from one index on, up to the next run, are of a term.
type termRun struct{ from, term uint64 }

// copyLog copies the log of n, which is right.
func copyLog(ctx context.Context, n *checkedNode) (*logCopy, error) {
	dir := filepath.Join(n.scratch, "log")
	if err := os.MkdirAll(filepath.Join(dir, snapshotsDir), 0o700); err != nil {
		return nil, fmt.Errorf("copy the log: %w", err)
	}
	if err := copyLogFiles(ctx, n, dir); err != nil {
		return nil, fmt.Errorf("copy the log: %w", err)
	}
	for _, s := range n.report.Snapshots {
		if s.Damage != nil {
			continue
		}
		if err := linkSnapshot(n.path(snapshotsDir, s.ID), filepath.Join(dir, snapshotsDir, s.ID)); err != nil {
			return nil, fmt.Errorf("copy the log: %w", err)
		}
	}
	stores, err := disk.Open(disk.Config{
		Dir: dir, Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
		OnFailure: func(error) {}, // whoever reads is told too
		End:       func(error) {}, Leads: func() bool { return false },
		Wake: make(chan time.Time), // nobody waits for this process if the disk hangs
	})
	if err != nil {
		return nil, fmt.Errorf("open the copy of the log: %w", err)
	}
	l := &logCopy{stores: stores, first: n.report.First, last: n.report.Last}
	if err := l.readTerms(ctx); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// copyLogFiles copies the files that the log of n consists of.
func copyLogFiles(ctx context.Context, n *checkedNode, dir string) error {
	files, err := disk.LogFiles(n.Dir)
	if err != nil {
		return err
	}
	for _, name := range files {
		to := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := copyFile(ctx, n.path(name), to); err != nil {
			return err
		}
	}
	return nil
}

func (l *logCopy) close() error {
	if err := l.stores.Close(); err != nil {
		return fmt.Errorf("close the copy of the log: %w", err)
	}
	return nil
}

// copyFile makes the file at to, and stops when ctx ends.
func copyFile(ctx context.Context, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	const portion = 16 << 20
	for ctx.Err() == nil {
		if _, err := io.CopyN(out, in, portion); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// linkSnapshot makes a folder with links to the files of a snapshot. They are only
// read: a node's storage writes no snapshot a second time.
func linkSnapshot(from, to string) error {
	absolute, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	files, err := os.ReadDir(absolute)
	if err != nil {
		return err
	}
	errs := []error{os.Mkdir(to, 0o700)}
	for _, f := range files {
		errs = append(errs, os.Symlink(filepath.Join(absolute, f.Name()), filepath.Join(to, f.Name())))
	}
	return errors.Join(errs...)
}

// portionEntries and portionBytes bound how much of a log is in memory at a time.
const (
	portionEntries = 512
	portionBytes   = 4 << 20
)

// each calls do with the entries from low to high, in portions.
func (l *logCopy) each(ctx context.Context, low, high uint64, do func([]*raft.Log) error) error {
	var portion []*raft.Log
	size := 0
	for i := low; i <= high; i++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		entry := new(raft.Log)
		if err := l.stores.Logs.GetLog(i, entry); err != nil {
			return fmt.Errorf("read entry %d: %w", i, err)
		}
		portion = append(portion, entry)
		size += len(entry.Data)
		if i < high && len(portion) < portionEntries && size < portionBytes {
			continue
		}
		if err := do(portion); err != nil {
			return err
		}
		portion, size = nil, 0
	}
	return nil
}

func (l *logCopy) readTerms(ctx context.Context) error {
	if l.last == 0 {
		return nil
	}
	return l.each(ctx, l.first, l.last, func(entries []*raft.Log) error {
		for _, e := range entries {
			if len(l.terms) == 0 || l.terms[len(l.terms)-1].term != e.Term {
				l.terms = append(l.terms, termRun{from: e.Index, term: e.Term})
			}
		}
		return nil
	})
}

// termAt returns the term of the entry at index, false if the log does not have it.
func (l *logCopy) termAt(index uint64) (uint64, bool) {
	if index < l.first || index > l.last || l.last == 0 {
		return 0, false
	}
	term := uint64(0)
	for _, run := range l.terms {
		if run.from > index {
			break
		}
		term = run.term
	}
	return term, true
}
