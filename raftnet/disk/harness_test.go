package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// plenty is space enough, but not for a spare file, which would have to be copied
// again and again.
const plenty = 70 << 20

// onEach runs a test on each kind of log.
func onEach(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	for _, kind := range disk.LogKinds() {
		t.Run(string(kind), test)
	}
}

// kindOf is the kind of log that onEach runs a test on, which is in its name.
func kindOf(t *testing.T) disk.LogKind {
	for _, kind := range disk.LogKinds() {
		if slices.Contains(strings.Split(t.Name(), "/"), string(kind)) {
			return kind
		}
	}
	return disk.LogBolt
}

// config is a storage in dir on a disk with space, of a node that must not fail.
func config(t *testing.T, dir string) disk.Config {
	return disk.Config{
		Dir: dir, Log: kindOf(t), Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
		OnFailure: func(err error) { t.Errorf("failed: %v", err) },
		End:       func(err error) { t.Errorf("ended: %v", err) },
		Leads:     func() bool { return false },
		Free:      func(string) (uint64, error) { return plenty, nil },
	}
}

// open opens a storage and closes it when the test ends.
func open(t *testing.T, cfg disk.Config) *disk.Stores {
	t.Helper()
	s, err := disk.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeStores(t, s) })
	return s
}

func closeStores(t *testing.T, s *disk.Stores) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// quickDir returns a directory for a test that writes so often that a real disk would
// make it slow: in memory, where there is such a place.
func quickDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "leasenode")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// crashed returns a copy of dir as a process that ends now would leave it.
func crashed(t *testing.T, dir string) string {
	t.Helper()
	for {
		to := filepath.Join(t.TempDir(), "copy")
		err := os.CopyFS(to, os.DirFS(dir))
		if errors.Is(err, fs.ErrNotExist) { // a segment that was being made has got its name
			must(t, os.RemoveAll(to))
			continue
		}
		must(t, err)
		return to
	}
}

func entry(index, term uint64) *raft.Log {
	return &raft.Log{Index: index, Term: term, Data: fmt.Appendf(nil, "entry %d of term %d", index, term), AppendedAt: time.Unix(int64(index), 5)}
}

func entries(first, last, term uint64) []*raft.Log {
	var logs []*raft.Log
	for i := first; i <= last; i++ {
		logs = append(logs, entry(i, term))
	}
	return logs
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func sameEntry(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && bytes.Equal(a.Data, b.Data) &&
		bytes.Equal(a.Extensions, b.Extensions) && a.AppendedAt.Equal(b.AppendedAt)
}

// checkLog fails the test if the log is not exactly want.
func checkLog(t *testing.T, logs raft.LogStore, want []*raft.Log) {
	t.Helper()
	if err := compareLog(logs, want); err != nil {
		t.Fatal(err)
	}
}

func compareLog(logs raft.LogStore, want []*raft.Log) error {
	first, err1 := logs.FirstIndex()
	last, err2 := logs.LastIndex()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	var wantFirst, wantLast uint64
	if len(want) > 0 {
		wantFirst, wantLast = want[0].Index, want[len(want)-1].Index
	}
	if first != wantFirst || last != wantLast {
		return fmt.Errorf("the log is %d to %d, want %d to %d", first, last, wantFirst, wantLast)
	}
	for _, w := range want {
		var got raft.Log
		if err := logs.GetLog(w.Index, &got); err != nil {
			return fmt.Errorf("entry %d: %w", w.Index, err)
		}
		if !sameEntry(&got, w) {
			return fmt.Errorf("entry %d is %+v, want %+v", w.Index, got, *w)
		}
	}
	for _, outside := range []uint64{wantFirst - 1, wantLast + 1} {
		if err := logs.GetLog(outside, &raft.Log{}); !errors.Is(err, raft.ErrLogNotFound) {
			return fmt.Errorf("entry %d outside of the log: %v", outside, err)
		}
	}
	return nil
}

// vote is what raft reads before it votes.
type vote struct {
	current, term uint64
	candidate     string
}

func readVote(t *testing.T, s *disk.Stores) vote {
	t.Helper()
	number := func(key string) uint64 {
		v, err := s.Stable.GetUint64([]byte(key))
		if err != nil && err.Error() != "not found" {
			t.Fatal(err)
		}
		return v
	}
	candidate, err := s.Stable.Get([]byte("LastVoteCand"))
	if err != nil && err.Error() != "not found" {
		t.Fatal(err)
	}
	return vote{number("CurrentTerm"), number("LastVoteTerm"), string(candidate)}
}

func setTerm(s *disk.Stores, term uint64) error {
	return s.Stable.SetUint64([]byte("CurrentTerm"), term)
}

// castVote does what raft does.
func castVote(s *disk.Stores, term uint64, candidate string) error {
	if err := s.Stable.SetUint64([]byte("LastVoteTerm"), term); err != nil {
		return err
	}
	return s.Stable.Set([]byte("LastVoteCand"), []byte(candidate))
}

// takeSnapshot takes a snapshot of size bytes up to index.
func takeSnapshot(s *disk.Stores, index, term uint64, size int) (string, error) {
	_, trans := raft.NewInmemTransport("n1")
	founders := raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1"}}}
	sink, err := s.Snapshots.Create(1, index, term, founders, 1, trans)
	if err != nil {
		return "", err
	}
	for part := range slices.Chunk(snapshotState(index, size), 64<<10) {
		if _, err := sink.Write(part); err != nil {
			return "", errors.Join(err, sink.Cancel())
		}
	}
	return sink.ID(), sink.Close()
}

func snapshotState(index uint64, size int) []byte {
	return bytes.Repeat([]byte{byte(index), 1, 2, 3}, size/4+1)[:size]
}

// failures is an OnFailure that counts.
type failures struct {
	count atomic.Int32
	err   atomic.Pointer[error]
}

func (f *failures) onFailure(err error) {
	f.count.Add(1)
	f.err.Store(&err)
}

// eventually polls until holds does, for a minute at most.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("%s: not within a minute", what)
}
