package disk_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// usable returns the indexes of the snapshots that are shown.
func usable(t *testing.T, s *disk.Stores) []uint64 {
	t.Helper()
	metas, err := s.Snapshots.List()
	must(t, err)
	var indexes []uint64
	for _, m := range metas {
		indexes = append(indexes, m.Index)
	}
	return indexes
}

func wantUsable(t *testing.T, s *disk.Stores, want ...uint64) {
	t.Helper()
	if got := usable(t, s); !slices.Equal(got, want) {
		t.Errorf("%v are usable, want %v", got, want)
	}
}

func TestSnapshotsGiveBackWhatTheyGot(t *testing.T) { onEach(t, testSnapshotsGiveBackWhatTheyGot) }

func testSnapshotsGiveBackWhatTheyGot(t *testing.T) {
	dir := t.TempDir()
	cfg := config(t, dir)
	s := open(t, cfg)
	must(t, s.Logs.StoreLogs(entries(1, 40, 3)))
	var ids []string
	for _, index := range []uint64{10, 20, 30} {
		id, err := takeSnapshot(s, index, 3, 5000)
		must(t, err)
		ids = append(ids, id)
	}
	wantUsable(t, s, 30, 20)
	meta, state, err := s.Snapshots.Open(ids[2])
	must(t, err)
	content, err := io.ReadAll(state)
	must(t, errors.Join(err, state.Close()))
	if !bytes.Equal(content, snapshotState(30, 5000)) || meta.Index != 30 || meta.Term != 3 || meta.Configuration.Servers[0].ID != "n1" || meta.Size != 5000 {
		t.Errorf("%d bytes, %+v", len(content), meta)
	}
	if _, _, err := s.Snapshots.Open(ids[0]); err == nil {
		t.Error("a removed snapshot opens")
	}
	if size := testGauge(t, cfg, "leasenode_snapshot_bytes"); size != 5000 {
		t.Errorf("its size is told as %v", size)
	}
	wantUsable(t, open(t, config(t, crashed(t, dir))), 30, 20)
}

func TestAHalfWrittenSnapshotIsPassedOver(t *testing.T) {
	onEach(t, testAHalfWrittenSnapshotIsPassedOver)
}

func testAHalfWrittenSnapshotIsPassedOver(t *testing.T) {
	dir := t.TempDir()
	s := open(t, config(t, dir))
	must(t, s.Logs.StoreLogs(entries(1, 40, 1)))
	_, err := takeSnapshot(s, 10, 1, 5000)
	must(t, err)
	_, trans := raft.NewInmemTransport("n1")
	sink, err := s.Snapshots.Create(1, 20, 1, raft.Configuration{}, 1, trans)
	must(t, err)
	_, err = sink.Write(make([]byte, 9000))
	must(t, err)

	copied := crashed(t, dir) // while it is being written
	again := open(t, config(t, copied))
	wantUsable(t, again, 10)
	noneUnfinished(t, copied)
	closeStores(t, again)
	must(t, sink.Close())
	must(t, sink.Close())
	must(t, sink.Cancel())
	wantUsable(t, s, 20, 10)

	// A crash after raft's own last step and before ours.
	copied = crashed(t, dir)
	must(t, os.Remove(filepath.Join(copied, "snapshots", sink.ID(), "meta.sum")))
	again = open(t, config(t, copied))
	wantUsable(t, again, 10)
	closeStores(t, again)
	noneUnfinished(t, dir)
}

func noneUnfinished(t *testing.T, dir string) {
	t.Helper()
	if left, err := filepath.Glob(filepath.Join(dir, "snapshots", "*.tmp")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestACancelledSnapshotLeavesNothing(t *testing.T) {
	onEach(t, testACancelledSnapshotLeavesNothing)
}

func testACancelledSnapshotLeavesNothing(t *testing.T) {
	cfg := config(t, t.TempDir())
	s := open(t, cfg)
	must(t, s.Logs.StoreLogs(entries(1, 40, 1)))
	_, trans := raft.NewInmemTransport("n1")
	sink, err := s.Snapshots.Create(1, 20, 1, raft.Configuration{}, 1, trans)
	must(t, err)
	must(t, sink.Cancel())
	if err := sink.Close(); err == nil {
		t.Error("it can be finished after")
	}
	wantUsable(t, s)
	if left, err := os.ReadDir(filepath.Join(cfg.Dir, "snapshots")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if failures := testGauge(t, cfg, "leasenode_snapshot_failures_total"); failures != 1 {
		t.Errorf("%v failures are counted", failures)
	}
}

// What is damaged does not count when old snapshots are removed.
func TestAGoodSnapshotIsNotRemovedForADamagedOne(t *testing.T) {
	onEach(t, testAGoodSnapshotIsNotRemovedForADamagedOne)
}

func testAGoodSnapshotIsNotRemovedForADamagedOne(t *testing.T) {
	dir := t.TempDir()
	s := open(t, config(t, dir))
	must(t, s.Logs.StoreLogs(entries(1, 40, 1)))
	_, err := takeSnapshot(s, 10, 1, 100)
	must(t, err)
	id, err := takeSnapshot(s, 20, 1, 100)
	must(t, err)
	closeStores(t, s)
	must(t, os.Truncate(filepath.Join(dir, "snapshots", id, "state.bin"), 99))
	s = open(t, config(t, dir))
	wantUsable(t, s, 10)
	_, err = takeSnapshot(s, 30, 1, 100)
	must(t, err)
	wantUsable(t, s, 30, 10)
	_, err = takeSnapshot(s, 40, 1, 100)
	must(t, err)
	wantUsable(t, s, 40, 30)
	if left, err := os.ReadDir(filepath.Join(dir, "snapshots")); err != nil || len(left) != 2 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestAnOlderSnapshotThanThereIsIsRefused(t *testing.T) {
	onEach(t, testAnOlderSnapshotThanThereIsIsRefused)
}

func testAnOlderSnapshotThanThereIsIsRefused(t *testing.T) {
	s := open(t, config(t, t.TempDir()))
	must(t, s.Logs.StoreLogs(entries(1, 40, 1)))
	_, err := takeSnapshot(s, 30, 1, 100)
	must(t, err)
	if _, err := takeSnapshot(s, 29, 1, 100); err == nil || s.Err() != nil {
		t.Errorf("%v, %v", err, s.Err())
	}
}

func TestContinuous(t *testing.T) { onEach(t, testContinuous) }

func testContinuous(t *testing.T) {
	for _, c := range []struct {
		name     string
		extent   disk.Extent
		from, to uint64 // what is missing, 0 if nothing is
	}{
		{"new", disk.Extent{}, 0, 0},
		{"log only", disk.Extent{First: 1, Last: 9}, 0, 0},
		{"snapshot only", disk.Extent{Snapshot: 9, Covered: 9}, 0, 0},
		{"overlapping", disk.Extent{First: 5, Last: 20, Snapshot: 9, Covered: 9}, 0, 0},
		{"joining", disk.Extent{First: 10, Last: 20, Snapshot: 9, Covered: 9}, 0, 0},
		{"the log is behind", disk.Extent{First: 1, Last: 5, Snapshot: 9, Covered: 9}, 0, 0},
		{"a snapshot not noted", disk.Extent{First: 1, Last: 20, Snapshot: 9}, 0, 0},
		{"fallen back, the log makes up", disk.Extent{First: 1, Last: 20, Snapshot: 5, Covered: 9}, 0, 0},
		{"fallen back, the log just makes up", disk.Extent{First: 6, Last: 9, Snapshot: 5, Covered: 9}, 0, 0},
		{"no snapshot, the log makes up", disk.Extent{First: 1, Last: 20, Covered: 9}, 0, 0},
		{"a hole", disk.Extent{First: 11, Last: 20, Snapshot: 9, Covered: 9}, 10, 10},
		{"no snapshot", disk.Extent{First: 10, Last: 20, Covered: 9}, 1, 9},
		{"no snapshot and no log", disk.Extent{Covered: 9}, 1, 9},
		{"fallen back to before the log", disk.Extent{First: 10, Last: 20, Snapshot: 5, Covered: 9}, 6, 9},
		{"fallen back, and the log is too short", disk.Extent{First: 3, Last: 7, Snapshot: 5, Covered: 9}, 8, 9},
		{"fallen back, and there is no log", disk.Extent{Snapshot: 5, Covered: 9}, 6, 9},
		{"fallen back, and the log is behind that", disk.Extent{First: 1, Last: 3, Snapshot: 5, Covered: 9}, 6, 9},
	} {
		err := disk.Continuous("dir", c.extent)
		gap, refused := errors.AsType[*disk.GapError](err)
		if refused != (c.from > 0) || refused && (gap.From != c.from || gap.To != c.to) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// raft would go on with what is left.
func TestALostSnapshotIsAGap(t *testing.T) { onEach(t, testALostSnapshotIsAGap) }

func testALostSnapshotIsAGap(t *testing.T) {
	dir := t.TempDir()
	s := open(t, config(t, dir))
	must(t, s.Logs.StoreLogs(entries(1, 40, 1)))
	first, err := takeSnapshot(s, 10, 1, 100)
	must(t, err)
	second, err := takeSnapshot(s, 30, 1, 100)
	must(t, err)
	must(t, s.Logs.DeleteRange(1, 20))
	closeStores(t, s)
	for _, c := range []struct {
		lost     []string
		from, to uint64
	}{
		{[]string{first}, 0, 0},
		{[]string{second}, 11, 20},
		{[]string{first, second}, 1, 20},
	} {
		copied := crashed(t, dir)
		for _, id := range c.lost {
			must(t, os.RemoveAll(filepath.Join(copied, "snapshots", id)))
		}
		again, err := disk.Open(config(t, copied))
		gap, refused := errors.AsType[*disk.GapError](err)
		if refused != (c.from > 0) || refused && (gap.From != c.from || gap.To != c.to) {
			t.Errorf("without %v: %v", c.lost, err)
		}
		if err == nil {
			closeStores(t, again)
		}
	}
}
