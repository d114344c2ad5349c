package disk_test

import (
	"fmt"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// BenchmarkWrite appends entries, each time as many as raft would in one call, on the
// disk where the tests' folders are. What it writes has to be asked of the disk itself: the
// system counts whole folios for the process, of which less is written.
func BenchmarkWrite(b *testing.B) {
	for _, load := range []struct{ entries, bytes int }{{1, 100}, {64, 96}} {
		for _, kind := range disk.LogKinds() {
			b.Run(fmt.Sprintf("%dx%dB/%s", load.entries, load.bytes, kind), func(b *testing.B) {
				s, err := disk.Open(disk.Config{
					Dir: b.TempDir(), Log: kind, Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
					OnFailure: func(err error) { b.Error(err) }, End: func(err error) { b.Error(err) },
					Leads: func() bool { return false },
				})
				if err != nil {
					b.Fatal(err)
				}
				var next uint64
				data := make([]byte, load.bytes)
				logs := make([]*raft.Log, load.entries)
				b.ReportAllocs()
				for b.Loop() {
					for i := range logs {
						next++
						logs[i] = &raft.Log{Index: next, Term: 1, Data: data}
					}
					if err := s.Logs.StoreLogs(logs); err != nil {
						b.Fatal(err)
					}
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
