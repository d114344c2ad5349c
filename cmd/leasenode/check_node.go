package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// checkedNode is a data directory, what was found in it, and what is wrong with it.
type checkedNode struct {
	nodeJSON
	// scratch is a folder that is made when it is needed, and removed by whoever checks.
	scratch string
	// empty says that there is nothing of a node.
	empty bool
	// identity is nil if it is missing or damaged, report if there is no log.
	identity *raftnet.Identity
	report   *disk.Report
	// log is what the state is made of after a snapshot; nil if it is not whole or does
	// not join.
	log *logCopy
	// compared is the digest at the entry that nodes are compared at, "" if there is
	// none, and comparedAt the index of it.
	compared   string
	comparedAt uint64

	problems []problemJSON
}

// inspectNode reads what is in dir, but for the state.
func inspectNode(ctx context.Context, dir, scratch string) (*checkedNode, error) {
	n := &checkedNode{scratch: scratch, empty: !hasNode(dir)}
	n.nodeJSON = nodeJSON{Dir: dir, ID: filepath.Base(dir), Snapshots: []snapshotJSON{}, UnfinishedSnapshots: []string{}}
	if n.empty {
		return n, nil
	}
	if err := n.inspectIdentity(); err != nil {
		return nil, err
	}
	if err := n.inspectDisk(); err != nil {
		return nil, err
	}
	if n.report == nil || n.report.Log != nil || n.report.Gap != nil {
		return n, nil
	}
	var err error
	n.log, err = copyLog(ctx, n)
	return n, err
}

func (n *checkedNode) close() error {
	if n.log == nil {
		return nil
	}
	return n.log.close()
}

func (n *checkedNode) path(names ...string) string {
	return filepath.Join(append([]string{n.Dir}, names...)...)
}

// logPath is where the log is, or would be.
func (n *checkedNode) logPath() string {
	path, _, err := disk.FindLog(n.Dir)
	if err != nil {
		return n.path(disk.LogFile)
	}
	return path
}

// found notes a problem.
func (n *checkedNode) found(p problemJSON) {
	p.Dir = n.Dir
	n.problems = append(n.problems, p)
}

// damaged notes damage, if err is one that tells of it, and returns err otherwise.
func (n *checkedNode) damaged(part string, err error) error {
	p := problemJSON{Kind: problemDamaged, Part: part, Message: err.Error()}
	if corrupt, ok := errors.AsType[*disk.CorruptError](err); ok {
		p.File, p.Place, p.Index = corrupt.File, corrupt.Place, corrupt.Index
	} else if gap, ok := errors.AsType[*disk.GapError](err); ok {
		p.File, p.Place, p.Index = n.logPath(), fmt.Sprintf("entry %d", gap.From), gap.From
	} else {
		return err
	}
	n.found(p)
	return nil
}

func (n *checkedNode) inspectIdentity() error {
	path := n.path(raftnet.IdentityFile)
	identity, err := raftnet.ReadIdentity(n.Dir)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		n.found(problemJSON{
			Kind: problemDamaged, Part: partIdentity, File: path, Place: "its directory",
			Message: fmt.Sprintf("%s is missing, and with it who this node is: put it back from a copy that is not older (this version cannot replace a node for good)", path),
		})
		return nil
	case errors.As(err, &failed):
		return err
	case err != nil:
		n.found(problemJSON{Kind: problemDamaged, Part: partIdentity, File: path, Place: "its content", Message: err.Error()})
		return nil
	}
	n.identity, n.ID = identity, identity.ID
	n.Identity = identityOf(identity)
	return nil
}

func identityOf(i *raftnet.Identity) *identityJSON {
	result := &identityJSON{Incarnation: i.Incarnation, Starts: i.Starts, ClusterID: i.ClusterID(), Founders: []founderJSON{}, Seen: []seenJSON{}}
	for _, m := range i.Table {
		result.Founders = append(result.Founders, founderJSON{ID: m.ID, PeerAddr: m.Addr, Incarnation: m.Incarnation})
	}
	for _, id := range slices.Sorted(maps.Keys(i.Seen)) {
		result.Seen = append(result.Seen, seenJSON{ID: id, Starts: i.Seen[id].Starts})
	}
	return result
}

// inspectDisk reads the log and the snapshots.
func (n *checkedNode) inspectDisk() error {
	path := n.logPath()
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return n.withoutLog(path)
	}
	report, err := disk.Inspect(n.Dir)
	if err != nil {
		return err
	}
	n.report = report
	n.Log = &logJSON{First: report.First, Last: report.Last, RightUpTo: report.Verified, OK: report.Log == nil}
	if report.Log == nil || report.Last > 0 || report.Term > 0 {
		n.Vote = &voteJSON{Term: report.Term, VotedInTerm: report.VoteTerm, VotedFor: report.VoteCandidate}
	}
	faults := []error{report.Log, report.Gap}
	if n.identity != nil && n.identity.Joined && report.Log == nil && report.Last == 0 && report.Covered == 0 {
		faults = append(faults, &disk.CorruptError{File: path, Place: "its content", Problem: fmt.Sprintf("it is empty, though %s says that it had entries", raftnet.IdentityFile)})
	}
	for _, err := range faults {
		if err == nil {
			continue
		}
		if err := n.damaged(partLog, err); err != nil {
			return err
		}
	}
	return n.inspectSnapshots()
}

func (n *checkedNode) inspectSnapshots() error {
	n.UnfinishedSnapshots = append(n.UnfinishedSnapshots, n.report.Unfinished...)
	for _, s := range n.report.Snapshots {
		n.Snapshots = append(n.Snapshots, snapshotJSON{
			Name: s.ID, Index: s.Index, Term: s.Term, Bytes: s.Size, Created: s.Created.UTC(), Usable: s.Damage == nil,
		})
		if s.Damage == nil {
			continue
		}
		corrupt, ok := errors.AsType[*disk.CorruptError](s.Damage)
		if !ok {
			return s.Damage
		}
		n.found(problemJSON{
			Kind: problemDamaged, Part: partSnapshot, File: corrupt.File, Place: corrupt.Place, Index: s.Index,
			Message: fmt.Sprintf("%s is damaged at %s: %s; a node that is started here passes over this snapshot", corrupt.File, corrupt.Place, corrupt.Problem),
		})
	}
	return nil
}

// withoutLog judges a directory that has no log: a node may not have come to make one.
func (n *checkedNode) withoutLog(path string) error {
	_, err := os.Stat(n.path(snapshotsDir))
	if n.identity != nil && !n.identity.Joined && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return n.damaged(partLog, &disk.CorruptError{File: path, Place: "its directory", Problem: "it is missing"})
}
