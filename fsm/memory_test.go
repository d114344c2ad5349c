package fsm_test

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// TestSnapshotsTakeNoMemoryForKeys holds the heap to a bound that the state is
// many times larger than.
func TestSnapshotsTakeNoMemoryForKeys(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200,000 records")
	}
	const records, perEntry, bound = 200_000, 2000, 24 << 20
	m := openMachine(t, fsm.Settings{})
	for i := range records / perEntry {
		mutations := make([]lease.Mutation, perEntry)
		for j := range mutations {
			mutations[j] = acquire(fmt.Sprintf("orgs/some-organization/tenants/tenant-%09d", i*perEntry+j), "host-17.example.org/worker-3", "request-0123456789abcdef", time.Minute)
		}
		m.do(mutations...)
	}
	file, err := os.Create(t.TempDir() + "/snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	peak := &heapPeak{}
	s, err := m.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	peak.start()
	if err := s.Persist(&fileSink{file, peak}); err != nil {
		t.Fatal(err)
	}
	s.Release()
	size, err := file.Seek(0, io.SeekCurrent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	other := newMachine(t)
	if err := other.Restore(io.NopCloser(&peakReader{file, peak})); err != nil {
		t.Fatal(err)
	}
	t.Logf("a snapshot of %d MiB took %d MiB of heap", size>>20, peak.most>>20)
	if peak.most > bound {
		t.Errorf("the heap grew by %d MiB, and %d are allowed", peak.most>>20, bound>>20)
	}
	if other.lastDigest() != m.lastDigest() || other.Keys() != records {
		t.Error("the states differ")
	}
}

// heapPeak looks at the live heap now and then.
type heapPeak struct {
	base, most, calls uint64
}

func liveHeap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func (p *heapPeak) start() { p.base = liveHeap() }

func (p *heapPeak) look() {
	if p.calls++; p.calls%20 != 0 {
		return
	}
	if live := liveHeap(); live > p.base {
		p.most = max(p.most, live-p.base)
	}
}

type fileSink struct {
	*os.File
	peak *heapPeak
}

func (s *fileSink) Write(b []byte) (int, error) { s.peak.look(); return s.File.Write(b) }
func (*fileSink) Close() error                  { return nil }
func (*fileSink) Cancel() error                 { return nil }
func (*fileSink) ID() string                    { return "file" }

type peakReader struct {
	io.Reader
	peak *heapPeak
}

func (r *peakReader) Read(b []byte) (int, error) { r.peak.look(); return r.Reader.Read(b) }
