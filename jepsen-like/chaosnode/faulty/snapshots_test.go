package faulty_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/chaosnode/faulty"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// storesOn opens stores on d whose log has the entries 1 to 5, of term 1.
func storesOn(t *testing.T, d *faulty.Disk, dir string) *disk.Stores {
	t.Helper()
	stores, err := d.Open(disk.Config{
		Dir: dir, Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
		OnFailure: func(error) {}, End: func(error) {}, Leads: func() bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stores.Close() })
	for i := range uint64(5) {
		if err := stores.Logs.StoreLog(&raft.Log{Index: i + 1, Term: 1, Data: []byte("entry")}); err != nil {
			t.Fatal(err)
		}
	}
	return stores
}

// write writes a snapshot as raft does.
func write(stores *disk.Stores, last raft.Log) error {
	sink, err := stores.Snapshots.Create(1, last.Index, last.Term, raft.Configuration{}, 1, nil)
	if err != nil {
		return err
	}
	if _, err := sink.Write([]byte(content)); err != nil {
		return err
	}
	return sink.Close()
}

const content = "all of it"

// A node dies at each of three moments of a snapshot, and only while its disk is deadly.
func TestANodeDiesInTheMiddleOfASnapshot(t *testing.T) {
	dir := t.TempDir()
	var told []control.Event
	died := map[string]int{}
	d := faulty.NewDisk()
	d.Tell = func(e control.Event) { told = append(told, e) }
	d.Die = func() {
		last := told[len(told)-1]
		died[last.Detail]++
		unfinished, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp"))
		if finished := strings.Contains(last.Detail, ", finished"); err != nil || finished != (len(unfinished) == 0) || last.What != control.Killed {
			t.Errorf("%+v with %v unfinished (%v)", last, unfinished, err)
		}
	}
	stores := storesOn(t, d, dir)
	if err := write(stores, raft.Log{Index: 4, Term: 1}); err != nil || len(died) > 0 || len(told) != 1 || told[0].What != control.SnapshotTaken {
		t.Fatalf("%v, %+v", err, told)
	}
	if err := write(stores, raft.Log{Index: 5, Term: 2}); err != nil || told[1].What != control.SnapshotReceived {
		t.Fatalf("after an entry that is another here: %v, %+v", err, told)
	}
	if err := d.Set(nemesis.DiskDeadly); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(60) { // three moments, by chance
		if err := write(stores, raft.Log{Index: 10 + i, Term: 2}); err != nil {
			t.Fatal(err)
		}
	}
	deaths := 0
	for _, at := range []string{"half written", "written and not finished", "finished and not yet relied on"} {
		deaths += died["at a snapshot received, "+at]
		if died["at a snapshot received, "+at] == 0 {
			t.Errorf("never %s: %v", at, died)
		}
	}
	if deaths != 60 {
		t.Errorf("died %d times in 60 snapshots: %v", deaths, died)
	}
	metas, err := stores.Snapshots.List()
	if err != nil || len(metas) == 0 || metas[0].Index != 69 || metas[0].Size != int64(len(content)) {
		t.Errorf("what a node writes that does not die after all is not whole: %+v, %v", metas, err)
	}
}

func TestADiskTakesNoWrites(t *testing.T) {
	d := faulty.NewDisk()
	dir := t.TempDir()
	stores := storesOn(t, d, dir)
	if err := d.Set(nemesis.DiskReadOnly); err != nil {
		t.Fatal(err)
	}
	if err := write(stores, raft.Log{Index: 4, Term: 1}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v", err)
	}
	if found, err := os.ReadDir(filepath.Join(dir, "snapshots")); err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	var failed *disk.StorageError
	if err := stores.Logs.StoreLog(&raft.Log{Index: 6, Term: 1}); !errors.As(err, &failed) || !errors.Is(err, syscall.EROFS) {
		t.Errorf("%v", err)
	}
}
