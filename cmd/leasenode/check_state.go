package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// makeState makes the state that a start would make, and verifies it; on the way, or
// in a second go, it takes the digest at the entry that nodes are compared at, if that
// is not 0.
func (n *checkedNode) makeState(ctx context.Context, compareAt uint64) error {
	if n.report == nil {
		return nil
	}
	r, err := n.beginState(math.MaxUint64)
	if err != nil || r == nil {
		return err
	}
	passes := compareAt >= r.upTo && compareAt > 0
	if passes {
		err = r.compareAt(ctx, compareAt)
	}
	if err == nil {
		err = n.finishState(ctx, r)
	}
	if err = errors.Join(err, r.close()); err != nil || passes || compareAt == 0 {
		return err
	}
	if r, err = n.beginState(compareAt); err != nil || r == nil {
		return err
	}
	return errors.Join(r.compareAt(ctx, compareAt), r.close())
}

// replay is a state in the making.
type replay struct {
	node  *checkedNode
	state *fsm.FSM
	// snapshot is the index of the snapshot that it began with, 0 for none, and upTo
	// that of the last entry that is in it.
	snapshot, upTo uint64
	// stopped says that an entry could not be applied.
	stopped bool
}

// beginState begins with the newest usable snapshot of at most limit that the log goes
// on from. It returns nil if there is none and the log does not begin at the beginning.
func (n *checkedNode) beginState(limit uint64) (*replay, error) {
	state, err := fsm.Open(fsm.Config{Dir: filepath.Join(n.scratch, "state")})
	if err != nil {
		return nil, err
	}
	r := &replay{node: n, state: state}
	for _, s := range n.report.Snapshots {
		if s.Damage != nil || s.Index > limit || !n.goesOn(s.Index) {
			continue
		}
		restored, err := r.restore(s)
		if err != nil {
			return nil, errors.Join(err, r.close())
		}
		if restored {
			return r, nil
		}
	}
	if n.log == nil || n.log.first != 1 {
		return nil, r.close()
	}
	return r, nil
}

// goesOn reports whether a state with everything up to index can be made complete.
// Where the log is of no use, a snapshot is all there is.
func (n *checkedNode) goesOn(index uint64) bool {
	return n.log == nil || n.log.last <= index || n.log.first <= index+1
}

// restore reports whether the snapshot could be restored; a problem is noted if not.
func (r *replay) restore(s disk.Snapshot) (bool, error) {
	path := r.node.path(snapshotsDir, s.ID, snapshotFile)
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	err = r.state.Restore(file)
	p := problemJSON{Kind: problemDamaged, Part: partSnapshot, File: path, Place: "its content", Index: s.Index}
	if corrupt, ok := errors.AsType[*fsm.CorruptSnapshotError](err); ok {
		p.Place = fmt.Sprintf("offset %d", corrupt.Offset)
	} else if _, ok := errors.AsType[*fsm.UnknownSnapshotError](err); ok {
		p.Kind = problemNewer
	} else {
		r.snapshot, r.upTo = s.Index, s.Index
		return err == nil, err
	}
	p.Message = fmt.Sprintf("%s cannot be used, though it is what was written: %v", path, err)
	r.node.foundOnce(p)
	return false, nil
}

// foundOnce notes a problem that may have been met before.
func (n *checkedNode) foundOnce(p problemJSON) {
	p.Dir = n.Dir
	for _, known := range n.problems {
		if known == p {
			return
		}
	}
	n.problems = append(n.problems, p)
}

func (r *replay) close() error {
	if err := r.state.Close(); err != nil {
		return fmt.Errorf("remove the state that was made: %w", err)
	}
	return nil
}

// advance applies the log up to index, or up to the first entry that cannot be applied.
func (r *replay) advance(ctx context.Context, index uint64) error {
	l := r.node.log
	if l == nil || r.stopped {
		return nil
	}
	return l.each(ctx, r.upTo+1, min(index, l.last), func(entries []*raft.Log) error {
		if r.stopped {
			return nil
		}
		return r.apply(entries)
	})
}

// apply does what raft does: it keeps no-ops and barriers from the state machine.
func (r *replay) apply(entries []*raft.Log) error {
	var commands []*raft.Log
	for _, e := range entries {
		if e.Type == raft.LogCommand || e.Type == raft.LogConfiguration {
			commands = append(commands, e)
		}
	}
	if len(commands) > 0 {
		for i, response := range r.state.ApplyBatch(commands) {
			if err, failed := response.(error); failed && !refused(err) {
				return r.cannotApply(commands[i], err)
			}
		}
	}
	r.upTo = entries[len(entries)-1].Index
	return nil
}

// refused tells an entry that was rightly not applied.
func refused(err error) bool {
	_, ok := errors.AsType[*fsm.TermError](err)
	return ok
}

func (r *replay) cannotApply(entry *raft.Log, err error) error {
	p := problemJSON{Kind: problemDamaged, Part: partState, File: r.node.logPath(), Place: fmt.Sprintf("entry %d", entry.Index), Index: entry.Index}
	_, malformed := errors.AsType[*fsm.CorruptEntryError](err)
	_, broken := errors.AsType[*fsm.InvariantError](err)
	_, newer := errors.AsType[*fsm.UnknownEntryError](err)
	switch {
	case newer:
		p.Kind = problemNewer
	case !malformed && !broken:
		return err
	}
	p.Message = fmt.Sprintf("%s has an entry that a node stops at: %v", p.File, err)
	r.node.foundOnce(p)
	r.stopped, r.upTo = true, entry.Index-1
	return nil
}

// compareAt takes the digest at index, unless it is not reached.
func (r *replay) compareAt(ctx context.Context, index uint64) error {
	if err := r.advance(ctx, index); err != nil || r.stopped {
		return err
	}
	if digests := r.state.Digests(); len(digests) > 0 {
		last := digests[len(digests)-1]
		r.node.compared, r.node.comparedAt = digestText(last), last.Index
	}
	return nil
}

// verify holds the state against the rules. It returns nil if a problem was found.
func (r *replay) verify() (*fsm.Census, error) {
	census, err := r.state.Verify()
	if err == nil {
		return &census, nil
	}
	_, corrupt := errors.AsType[*fsm.CorruptStateError](err)
	_, broken := errors.AsType[*fsm.InvariantError](err)
	if !corrupt && !broken {
		return nil, err
	}
	r.node.foundOnce(problemJSON{
		Kind: problemDamaged, Part: partState, Index: r.state.AppliedIndex(),
		Message: fmt.Sprintf("the state that %s leads to breaks a rule: %v", r.node.Dir, err),
	})
	return nil, nil
}

// finishState applies all there is and notes what the state is.
func (n *checkedNode) finishState(ctx context.Context, r *replay) error {
	if err := r.advance(ctx, math.MaxUint64); err != nil {
		return err
	}
	census, err := r.verify()
	if err != nil || census == nil {
		return err
	}
	n.State = &checkedStateJSON{
		SnapshotIndex: r.snapshot, UpTo: r.upTo, Complete: n.log != nil && !r.stopped,
		Keys: census.Keys, Held: census.Held, HighestEpoch: census.HighestEpoch, NowMS: census.Now.Millis(),
		DigestIndex: census.Digest.Index, Digest: digestText(census.Digest),
	}
	return nil
}

func digestText(d fsm.Digest) string { return hex.EncodeToString(d.Sum[:]) }
