package disk

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"
)

// Report is what the directory of a stopped node was found to have.
type Report struct {
	// Term is the term that the node was in, VoteTerm and VoteCandidate its last vote.
	Term          uint64
	VoteTerm      uint64
	VoteCandidate string
	// First and Last are the range of the log as it was written, both 0 if it is
	// empty, and Verified is up to where it is right.
	First, Last, Verified uint64
	// VerifiedTerm is the term of the entry at Verified.
	VerifiedTerm uint64
	// Log is what is wrong with the log or the vote, a [*CorruptError] that names the
	// first entry or page; nil if all is right. If the head itself could not be read,
	// the fields above are 0.
	Log error
	// Covered is the index of the newest snapshot that was ever finished.
	Covered uint64
	// Snapshots are all that there are, newest first.
	Snapshots []Snapshot
	// Unfinished are the names of snapshots that were being written when the process
	// ended. They do no harm.
	Unfinished []string
	// Gap is a [*GapError] if log and snapshots do not join.
	Gap error
}

// Inspect reads everything in the data directory of a stopped node, and changes
// nothing. The error says that it could not be read; what is wrong in it is in the
// report.
func Inspect(dir string) (*Report, error) {
	report := &Report{}
	img, err := scanLog(dir)
	if _, damaged := errors.AsType[*CorruptError](err); err != nil && !damaged {
		return nil, err
	}
	report.Log = err
	if img.head != nil {
		report.read(img)
	}
	folder := filepath.Join(dir, snapshotsDir)
	found, others, err := listSnapshots(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	e := Extent{First: report.First, Last: report.Last, Covered: report.Covered}
	for i := range found {
		verifySnapshot(folder, &found[i])
		if _, damaged := errors.AsType[*CorruptError](found[i].Damage); found[i].Damage != nil && !damaged {
			return nil, found[i].Damage
		}
		if found[i].Damage == nil && e.Snapshot == 0 {
			e.Snapshot = found[i].Index
		}
	}
	report.Snapshots = found
	for _, name := range others {
		if isUnfinished(name) {
			report.Unfinished = append(report.Unfinished, name)
		}
	}
	report.Gap = Continuous(dir, e)
	return report, nil
}

func (r *Report) read(img *image) {
	h := img.head
	r.First, r.Last, r.Verified, r.VerifiedTerm, r.Covered = h.first, h.last, img.verified, img.lastTerm, h.covered
	number := func(key string) uint64 {
		if v := h.stable[key]; len(v) == 8 {
			return binary.BigEndian.Uint64(v)
		}
		return 0
	}
	r.Term, r.VoteTerm, r.VoteCandidate = number(keyCurrentTerm), number(keyVoteTerm), string(h.stable[keyVoteCandidate])
}
