package logstores_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	raftwal "github.com/hashicorp/raft-wal"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// store is a log store that is open.
type store struct {
	raft.LogStore
	close func() error
}

// stores open each kind in a folder.
func stores() map[string]func(b *testing.B, dir string) store {
	return map[string]func(b *testing.B, dir string) store{
		"raft-boltdb": func(b *testing.B, dir string) store {
			s, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "raft.db")})
			must(b, err)
			return store{s, s.Close}
		},
		"raft-wal": func(b *testing.B, dir string) store {
			s, err := raftwal.Open(dir)
			must(b, err)
			return store{s, s.Close}
		},
		"leasenode, bolt": func(b *testing.B, dir string) store { return ours(b, dir, disk.LogBolt) },
		"leasenode, wal":  func(b *testing.B, dir string) store { return ours(b, dir, disk.LogWAL) },
	}
}

func ours(b *testing.B, dir string, kind disk.LogKind) store {
	fail := func(err error) { b.Error(err) }
	s, err := disk.Open(disk.Config{
		Dir: dir, Log: kind, Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
		OnFailure: fail, End: fail, Leads: func() bool { return false },
	})
	must(b, err)
	return store{s.Logs, s.Close}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// entries are n entries of 200 bytes from index first on.
func entries(first uint64, n int) []*raft.Log {
	var all []*raft.Log
	for i := range n {
		all = append(all, &raft.Log{Index: first + uint64(i), Term: 1, Type: raft.LogCommand, Data: make([]byte, 200), AppendedAt: time.Unix(1, 0)})
	}
	return all
}

// BenchmarkStoreLogs writes entries, so many at a time.
func BenchmarkStoreLogs(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		for name, open := range stores() {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				s := open(b, b.TempDir())
				next := uint64(1)
				b.ReportAllocs()
				for b.Loop() {
					must(b, s.StoreLogs(entries(next, n)))
					next += uint64(n)
				}
				must(b, s.close())
			})
		}
	}
}

// BenchmarkOpen opens a log of 100,000 entries, which ours verifies. raft-wal 0.4.0 is left
// out: its Close keeps the file of its metadata open and locked, so that a process can open
// it once.
func BenchmarkOpen(b *testing.B) {
	const kept, chunk = 100_000, 1_000
	for name, open := range stores() {
		if name == "raft-wal" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			s := open(b, dir)
			for first := uint64(1); first < kept; first += chunk {
				must(b, s.StoreLogs(entries(first, chunk)))
			}
			must(b, s.close())
			b.ResetTimer()
			for range b.N {
				s := open(b, dir)
				b.StopTimer()
				must(b, s.close())
				b.StartTimer()
			}
			b.ReportMetric(mebibytes(b, dir), "MiB")
		})
	}
}

// mebibytes is the size of the files in a folder.
func mebibytes(b *testing.B, dir string) float64 {
	sum := int64(0)
	must(b, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return err
	}))
	return float64(sum) / (1 << 20)
}
