package disk_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

func TestLogGivesBackWhatItGot(t *testing.T) { onEach(t, testLogGivesBackWhatItGot) }

func testLogGivesBackWhatItGot(t *testing.T) {
	dir := t.TempDir()
	logs := []*raft.Log{
		{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: []byte("members")},
		{Index: 2, Term: 1, Type: raft.LogNoop},
		{Index: 3, Term: 1, Data: []byte{}, Extensions: []byte("extra"), AppendedAt: time.Now()},
		{Index: 4, Term: 2, Type: raft.LogBarrier, Data: make([]byte, 300_000), Extensions: make([]byte, 3)},
	}
	s := open(t, config(t, dir))
	checkLog(t, s.Logs, nil)
	must(t, s.Logs.StoreLog(logs[0]))
	must(t, s.Logs.StoreLogs(logs[1:]))
	must(t, s.Logs.StoreLogs(nil))
	checkLog(t, s.Logs, logs)
	if logs[2].Extensions == nil || string(logs[2].Extensions) != "extra" {
		t.Error("what is replicated was changed")
	}
	closeStores(t, s)
	checkLog(t, open(t, config(t, dir)).Logs, logs)
}

func TestLogIsCutAtBothEnds(t *testing.T) { onEach(t, testLogIsCutAtBothEnds) }

func testLogIsCutAtBothEnds(t *testing.T) {
	dir := t.TempDir()
	s := open(t, config(t, dir))
	must(t, s.Logs.StoreLogs(entries(1, 20, 1)))
	if _, err := takeSnapshot(s, 10, 1, 8); err != nil {
		t.Fatal(err)
	}
	must(t, s.Logs.DeleteRange(0, 5))
	checkLog(t, s.Logs, entries(6, 20, 1))
	must(t, s.Logs.DeleteRange(15, 99))
	must(t, s.Logs.DeleteRange(30, 40))
	must(t, s.Logs.DeleteRange(12, 11))
	checkLog(t, s.Logs, entries(6, 14, 1))
	must(t, s.Logs.StoreLogs(entries(15, 17, 2)))
	want := append(entries(6, 14, 1), entries(15, 17, 2)...)
	checkLog(t, s.Logs, want)
	again := open(t, config(t, crashed(t, dir)))
	checkLog(t, again.Logs, want)
	must(t, again.Logs.DeleteRange(6, 17))
	checkLog(t, again.Logs, nil)
	must(t, again.Logs.StoreLogs(entries(6, 7, 3)))
	checkLog(t, again.Logs, entries(6, 7, 3))
}

func TestLogBehindASnapshotIsReplaced(t *testing.T) { onEach(t, testLogBehindASnapshotIsReplaced) }

func testLogBehindASnapshotIsReplaced(t *testing.T) {
	dir := t.TempDir()
	s := open(t, config(t, dir))
	must(t, s.Logs.StoreLogs(entries(1, 5, 1)))
	if _, err := takeSnapshot(s, 100, 2, 8); err != nil {
		t.Fatal(err)
	}
	s = open(t, config(t, crashed(t, dir))) // raft does not tidy up at a start
	checkLog(t, s.Logs, entries(1, 5, 1))
	must(t, s.Logs.StoreLogs(entries(101, 102, 2)))
	checkLog(t, s.Logs, entries(101, 102, 2))
}

func TestHolesAreRefused(t *testing.T) { onEach(t, testHolesAreRefused) }

func testHolesAreRefused(t *testing.T) {
	for name, astray := range map[string]func(*disk.Stores) error{
		"a gap":              func(s *disk.Stores) error { return s.Logs.StoreLog(entry(12, 1)) },
		"a gap in the batch": func(s *disk.Stores) error { return s.Logs.StoreLogs([]*raft.Log{entry(11, 1), entry(13, 1)}) },
		"an entry again":     func(s *disk.Stores) error { return s.Logs.StoreLog(entry(10, 1)) },
		"an entry that a snapshot has": func(s *disk.Stores) error {
			if _, err := takeSnapshot(s, 10, 1, 8); err != nil {
				return err
			}
			return s.Logs.StoreLog(entry(10, 1))
		},
		"index 0":           func(s *disk.Stores) error { return s.Logs.StoreLog(entry(0, 1)) },
		"the middle":        func(s *disk.Stores) error { return s.Logs.DeleteRange(4, 6) },
		"before a snapshot": func(s *disk.Stores) error { return s.Logs.DeleteRange(1, 9) },
	} {
		t.Run(name, func(t *testing.T) {
			var failed failures
			dir := t.TempDir()
			cfg := config(t, dir)
			cfg.OnFailure = failed.onFailure
			s := open(t, cfg)
			must(t, s.Logs.StoreLogs(entries(1, 10, 1)))
			err := astray(s)
			var storage *disk.StorageError
			if !errors.As(err, &storage) || failed.count.Load() != 1 {
				t.Fatalf("%v, %d failures", err, failed.count.Load())
			}
			checkLog(t, open(t, config(t, crashed(t, dir))).Logs, entries(1, 10, 1))
		})
	}
	s := open(t, config(t, t.TempDir()))
	if err := s.Logs.DeleteRange(1, 5); err != nil {
		t.Errorf("nothing to delete: %v", err)
	}
}
