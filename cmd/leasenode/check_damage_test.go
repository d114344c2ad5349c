package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet/disk"
)

func (s stopped) snapshot(t *testing.T, dir string, which int) string {
	t.Helper()
	report, err := disk.Inspect(dir)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, snapshotsDir, report.Snapshots[which].ID)
}

func (s stopped) checkDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   problemJSON
		state  string // complete, partial or none
	}{
		{"an entry", func(t *testing.T, dir string) {
			alter(t, filepath.Join(dir, disk.LogFile), func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("orders/3"), []byte("orders/X")) })
		}, problemJSON{Kind: problemDamaged, Part: partLog, File: disk.LogFile, Message: "put back"}, "partial"},
		{"a truncated log", func(t *testing.T, dir string) {
			alter(t, filepath.Join(dir, disk.LogFile), func(b []byte) []byte { return b[:5*4096] })
		}, problemJSON{Kind: problemDamaged, Part: partLog, File: disk.LogFile, Message: "put back"}, "partial"},
		{"an empty log", func(t *testing.T, dir string) {
			alter(t, filepath.Join(dir, disk.LogFile), func([]byte) []byte { return nil })
		}, problemJSON{Kind: problemDamaged, Part: partLog, File: disk.LogFile, Message: "empty"}, "partial"},
		{
			"no log", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, disk.LogFile)) },
			problemJSON{Kind: problemDamaged, Part: partLog, File: disk.LogFile, Message: "missing"},
			"none",
		},
		{"the newest snapshot damaged", func(t *testing.T, dir string) {
			alter(t, filepath.Join(s.snapshot(t, dir, 0), snapshotFile), flip(rand.New(rand.NewPCG(1, 1))))
		}, problemJSON{Kind: problemDamaged, Part: partSnapshot, File: snapshotFile, Message: "passes over"}, "complete"},
		{"the newest snapshot without a sum", func(t *testing.T, dir string) {
			remove(t, filepath.Join(s.snapshot(t, dir, 0), "meta.sum"))
		}, problemJSON{Kind: problemDamaged, Part: partSnapshot, File: "meta.sum", Message: "passes over"}, "complete"},
		{
			"no snapshots", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, snapshotsDir)) },
			problemJSON{Kind: problemDamaged, Part: partLog, File: disk.LogFile, Message: "in no usable snapshot"},
			"none",
		},
		{"a damaged identity", func(t *testing.T, dir string) {
			alter(t, filepath.Join(dir, "identity.json"), func(b []byte) []byte { return bytes.Replace(b, []byte(`"starts": 1`), []byte(`"starts": 2`), 1) })
		}, problemJSON{Kind: problemDamaged, Part: partIdentity, File: "identity.json", Message: "is damaged"}, "complete"},
		{"an identity of a newer format", func(t *testing.T, dir string) {
			alter(t, filepath.Join(dir, "identity.json"), func(b []byte) []byte {
				b = bytes.Replace(b, []byte(`"format": 1`), []byte(`"format": 7`), 1)
				return resealed(b)
			})
		}, problemJSON{Kind: problemDamaged, Part: partIdentity, File: "identity.json", Message: "newer leasenode"}, "complete"},
		{
			"no identity", func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "identity.json")) },
			problemJSON{Kind: problemDamaged, Part: partIdentity, File: "identity.json", Message: "missing"},
			"complete",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyOf(t, filepath.Join(s.dir, "n1"))
			c.change(t, dir)
			got, result := checked(t, dir)
			check(t, "code", got.code, node.ExitDamaged)
			expectProblem(t, result, c.want)
			state := "none"
			if st := result.Nodes[0].State; st != nil && st.Complete {
				state = "complete"
			} else if st != nil {
				state = "partial"
			}
			check(t, "state", state, c.state)
		})
	}
	t.Run("a snapshot that was never finished", func(t *testing.T) {
		dir := copyOf(t, filepath.Join(s.dir, "n1"))
		if err := os.Mkdir(filepath.Join(dir, snapshotsDir, "9-99-1.tmp"), 0o700); err != nil {
			t.Fatal(err)
		}
		got, result := checked(t, dir)
		check(t, "code", got.code, exitDone)
		check(t, "unfinished", len(result.Nodes[0].UnfinishedSnapshots), 1)
	})
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// checkBits flips bits everywhere: a flipped one is told of, or is nowhere that matters.
func (s stopped) checkBits(t *testing.T) {
	original := filepath.Join(s.dir, "n2")
	_, whole := checked(t, original)
	var files []string
	for path := range contents(t, original) {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			files = append(files, strings.TrimPrefix(path, original))
		}
	}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		name := files[int(seed)%len(files)]
		dir := copyOf(t, original)
		alter(t, filepath.Join(dir, name), flip(r))
		got, result := checked(t, dir)
		if got.code == node.ExitDamaged && !result.OK && len(result.Problems) > 0 {
			continue
		}
		if got.code != exitDone || *result.Nodes[0].State != *whole.Nodes[0].State || strings.Contains(name, snapshotsDir) || strings.HasSuffix(name, "identity.json") {
			t.Errorf("seed %d, a bit of %s: %+v", seed, name, got)
		}
	}
}

// checkContent holds that what is whole and makes no sense is told of.
func (s stopped) checkContent(t *testing.T) {
	for _, c := range []struct {
		name, entry, snapshot string
		code                  int
		want                  problemJSON
	}{
		{name: "a newer entry", entry: "\x63", code: exitFailed, want: problemJSON{Kind: problemNewer, Part: partState, File: disk.LogFile, Message: "run a newer one"}},
		{name: "no entry", entry: "\x01\x02\xff", code: node.ExitDamaged, want: problemJSON{Kind: problemDamaged, Part: partState, File: disk.LogFile, Message: "corrupt"}},
		{name: "a newer snapshot", snapshot: "LEASENOD\x63", code: exitFailed, want: problemJSON{Kind: problemNewer, Part: partSnapshot, File: snapshotFile, Message: "run a newer one"}},
		{name: "no snapshot", snapshot: "nonsense, all of it", code: node.ExitDamaged, want: problemJSON{Kind: problemDamaged, Part: partSnapshot, File: snapshotFile, Message: "corrupt"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyOf(t, filepath.Join(s.dir, "n1"))
			var index uint64
			s.tamper(t, dir, func(stores *disk.Stores, last raft.Log) error {
				index = last.Index
				if c.entry != "" {
					return stores.Logs.StoreLog(&raft.Log{Index: last.Index + 1, Term: last.Term, Type: raft.LogCommand, Data: []byte(c.entry)})
				}
				_, trans := raft.NewInmemTransport("n1")
				sink, err := stores.Snapshots.Create(1, last.Index, last.Term, raft.Configuration{}, 1, trans)
				if err != nil {
					return err
				}
				_, err = sink.Write([]byte(c.snapshot))
				return errors.Join(err, sink.Close())
			})
			got, result := checked(t, dir)
			check(t, "code", got.code, c.code)
			check(t, "problems", len(result.Problems), 1)
			expectProblem(t, result, c.want)
			if st := result.Nodes[0].State; st == nil || st.UpTo != index || st.Complete != (c.entry == "") {
				t.Errorf("%+v", st)
			}
		})
	}
}

// resealed returns the content of an identity file with a checksum that is right.
func resealed(content []byte) []byte {
	open := regexp.MustCompile(`"checksum": "[0-9a-f]*"`)
	empty := open.ReplaceAll(bytes.TrimSuffix(content, []byte("\n")), []byte(`"checksum": ""`))
	sum := sha256.Sum256(empty)
	return append(open.ReplaceAll(empty, fmt.Appendf(nil, `"checksum": "%x"`, sum)), '\n')
}
