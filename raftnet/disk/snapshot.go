package disk

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Snapshots are kept as raft's FileSnapshotStore does, each in a folder of its own
// with the state and, in meta.json, what it is and the checksum of the state. We add
// the checksum of meta.json itself, which has none, in a file of its own, written
// last: a snapshot without it is half-written.

const (
	snapshotsDir  = "snapshots"
	metaFile      = "meta.json"
	metaSumFile   = "meta.sum"
	stateFile     = "state.bin"
	unfinished    = ".tmp"
	maxMetaBytes  = 16 << 20
	snapshotParts = 3
)

// Snapshot is what a snapshot's folder was found to be.
type Snapshot struct {
	// ID is the name of the folder.
	ID string
	// Index and Term are those of the last entry that it has.
	Index, Term uint64
	// Size is the size of the state in bytes.
	Size int64
	// Created is when it was begun.
	Created time.Time
	// Damage is why it is not used, nil if it is usable.
	Damage error

	meta *raft.SnapshotMeta
}

// parseSnapshot returns what the name of a folder says: term, index and creation in
// Unix milliseconds.
func parseSnapshot(name string) (Snapshot, bool) {
	s := Snapshot{ID: name}
	var millis int64
	n, err := fmt.Sscanf(name, "%d-%d-%d", &s.Term, &s.Index, &millis)
	s.Created = time.UnixMilli(millis)
	return s, err == nil && n == snapshotParts && name == fmt.Sprintf("%d-%d-%d", s.Term, s.Index, millis)
}

// listSnapshots returns the finished snapshots in dir, newest first, and the names of
// what else is there. Nothing of them is read.
func listSnapshots(dir string) (found []Snapshot, others []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("list the snapshots: %w", err)
	}
	for _, e := range entries {
		s, ok := parseSnapshot(e.Name())
		if !ok || !e.IsDir() {
			others = append(others, e.Name())
			continue
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b Snapshot) int {
		return cmp.Or(cmp.Compare(b.Term, a.Term), cmp.Compare(b.Index, a.Index), b.Created.Compare(a.Created))
	})
	return found, others, nil
}

// readSnapshotMeta reads and verifies what the snapshot in folder is, without its
// state, and returns the checksum that this has to have.
func readSnapshotMeta(folder string) (*raft.SnapshotMeta, []byte, error) {
	path := filepath.Join(folder, metaFile)
	raw, err := readBounded(path)
	if err != nil {
		return nil, nil, err
	}
	sum, err := readBounded(filepath.Join(folder, metaSumFile))
	if err != nil {
		return nil, nil, err
	}
	name := filepath.Base(folder)
	if string(sum) != sumMeta(name, raw) {
		return nil, nil, &CorruptError{File: path, Place: "its content", Problem: "its checksum is another"}
	}
	var meta struct {
		raft.SnapshotMeta
		CRC []byte
	}
	if err := json.Unmarshal(raw, &meta); err != nil || meta.ID != name {
		return nil, nil, &CorruptError{File: path, Place: "its content", Problem: "it is not of this snapshot"}
	}
	return &meta.SnapshotMeta, meta.CRC, nil
}

// readBounded reads a small file. One that is not there is damage.
func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &CorruptError{File: path, Place: "its folder", Problem: "it is missing: the snapshot is half-written"}
	}
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxMetaBytes))
	return raw, errors.Join(err, f.Close())
}

// sumMeta is what metaSumFile has: the CRC-32C of the name and meta.json, in hex.
func sumMeta(name string, raw []byte) string {
	sum := crc32.Update(crc32.Checksum([]byte(name+"\n"), castagnoli()), castagnoli(), raw)
	return fmt.Sprintf("%08x\n", sum)
}

// writeSum finishes a snapshot.
func writeSum(folder string) error {
	raw, err := readBounded(filepath.Join(folder, metaFile))
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder, metaSumFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(sumMeta(filepath.Base(folder), raw))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return syncDir(folder)
}

// verifySnapshot reads all of a snapshot in dir and fills in s.
func verifySnapshot(dir string, s *Snapshot) {
	folder := filepath.Join(dir, s.ID)
	meta, crc, err := readSnapshotMeta(folder)
	if err == nil {
		s.Size = meta.Size
		err = verifyState(filepath.Join(folder, stateFile), meta.Size, crc)
	}
	if err == nil && (meta.Index != s.Index || meta.Term != s.Term) {
		err = &CorruptError{File: filepath.Join(folder, metaFile), Place: "its content", Problem: "it is of another index or term"}
	}
	if s.Damage = err; err == nil {
		s.meta = meta
	}
}

func verifyState(path string, size int64, crc []byte) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return &CorruptError{File: path, Place: "its folder", Problem: "it is missing"}
	}
	if err != nil {
		return err
	}
	sum := crc64.New(crc64.MakeTable(crc64.ECMA))
	n, err := io.Copy(sum, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read the snapshot %s: %w", path, err)
	}
	if n != size {
		return &CorruptError{File: path, Place: fmt.Sprintf("offset %d", min(n, size)), Problem: fmt.Sprintf("it has %d bytes and had %d", n, size)}
	}
	if !bytes.Equal(sum.Sum(nil), crc) {
		return &CorruptError{File: path, Place: "its content", Problem: "its checksum is another"}
	}
	return nil
}

// isUnfinished tells the folder of a snapshot that is being written, or was when its
// process ended.
func isUnfinished(name string) bool { return strings.HasSuffix(name, unfinished) }
