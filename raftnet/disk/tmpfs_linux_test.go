package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// smallDisk mounts a file system of size bytes, if this process may.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("mount a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// hog takes all the space that is left, and returns what gives it back.
func hog(t *testing.T, dir string) (release func()) {
	t.Helper()
	path := filepath.Join(dir, "hog")
	f, err := os.Create(path)
	must(t, err)
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	must(t, f.Close())
	return func() { must(t, os.Remove(path)) }
}

func TestARealDiskThatFillsUp(t *testing.T) { onEach(t, testARealDiskThatFillsUp) }

func testARealDiskThatFillsUp(t *testing.T) {
	dir := smallDisk(t, "size=40m")
	cfg := config(t, dir)
	cfg.Free, cfg.Reserve = nil, 2<<20
	ballast := filepath.Join(dir, "ballast")
	must(t, os.WriteFile(ballast, make([]byte, 16<<20), 0o600))
	s := open(t, cfg)
	eventually(t, "a spare file", func() bool { _, err := os.Stat(filepath.Join(dir, disk.SpareFile)); return err == nil })
	written := uint64(0)
	fill := func() error {
		for {
			big := entry(written+1, 1)
			big.Data = make([]byte, 50<<10)
			if err := s.Logs.StoreLogs([]*raft.Log{big}); err != nil {
				return err
			}
			written++
		}
	}
	if _, ok := errors.AsType[*disk.FullError](fill()); !ok || !s.Full() {
		t.Fatalf("full %t, %v", s.Full(), s.Err())
	}
	release := hog(t, dir) // somebody else takes even the reserve
	eventually(t, "the spare file to be given back", func() bool { _, err := os.Stat(filepath.Join(dir, disk.SpareFile)); return err != nil })
	must(t, castVote(s, 9, "n3"))
	if _, ok := errors.AsType[*disk.FullError](s.Logs.StoreLog(entry(written+1, 1))); !ok {
		t.Error("it goes on")
	}
	release()
	must(t, os.Remove(ballast))
	eventually(t, "the disk to have space", func() bool { return !s.Full() })
	must(t, s.Logs.StoreLog(entry(written+1, 1)))
	closeStores(t, s)

	again := open(t, config(t, dir))
	if last, err := again.Logs.LastIndex(); last != written+1 || err != nil || written < 100 {
		t.Errorf("the log ends at %d, want %d, %v", last, written+1, err)
	}
	if got := readVote(t, again); got.candidate != "n3" {
		t.Errorf("the vote is %+v", got)
	}
	closeStores(t, again)
}

// With the last byte gone a write fails, and with it the node; it starts again once
// there is room, with all that it acknowledged.
func TestARealDiskWithoutALastByte(t *testing.T) {
	dir := smallDisk(t, "size=24m")
	var failed failures
	cfg := config(t, dir)
	cfg.OnFailure, cfg.Reserve = failed.onFailure, 1 // it does not see it coming
	s := open(t, cfg)
	must(t, s.Logs.StoreLogs(entries(1, 50, 1)))
	release := hog(t, dir)
	var err error
	last := uint64(50)
	for err == nil {
		if err = s.Logs.StoreLog(entry(last+1, 1)); err == nil {
			last++
		}
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	checkLatched(t, s, err, &failed)
	closeStores(t, s)
	checkLog(t, open(t, config(t, crashed(t, dir))).Logs, entries(1, last, 1))
	release()
	again := open(t, config(t, dir))
	must(t, again.Logs.StoreLogs(entries(last+1, last+20, 1)))
	checkLog(t, again.Logs, entries(1, last+20, 1))
	closeStores(t, again)
}

// Where segments are made ahead the end of the disk is met before anything is touched: the
// node goes on, and votes.
func TestARealDiskWithoutALastByteRefuses(t *testing.T) {
	t.Run(string(disk.LogWAL), func(t *testing.T) {
		dir := smallDisk(t, "size=24m")
		cfg := config(t, dir)
		cfg.Reserve, cfg.Free = 1, nil // it does not see it coming
		s := open(t, cfg)
		must(t, s.Logs.StoreLogs(entries(1, 50, 1)))
		release := hog(t, dir)
		var err error
		last := uint64(50)
		for err == nil {
			if err = s.Logs.StoreLog(entry(last+1, 1)); err == nil {
				last++
			}
		}
		if _, ok := errors.AsType[*disk.FullError](err); !ok || s.Err() != nil || last < 80 {
			t.Fatalf("after %d entries: %v", last, err)
		}
		for term := uint64(2); term < 12; term++ {
			must(t, setTerm(s, term))
			must(t, castVote(s, term, "n2"))
		}
		release()
		eventually(t, "the disk to have space", func() bool { return !s.Full() })
		must(t, s.Logs.StoreLogs(entries(last+1, last+500, 1)))
		closeStores(t, s)
		again := open(t, config(t, dir))
		checkLog(t, again.Logs, entries(1, last+500, 1))
		closeStores(t, again)
	})
}

// Nothing rests on a snapshot until it is finished.
func TestASnapshotThatDoesNotFitIsGivenUp(t *testing.T) {
	onEach(t, testASnapshotThatDoesNotFitIsGivenUp)
}

func testASnapshotThatDoesNotFitIsGivenUp(t *testing.T) {
	dir := smallDisk(t, "size=8m")
	cfg := config(t, dir)
	cfg.Reserve = 1
	cfg.Free = func(string) (uint64, error) { return 10 << 20, nil } // it does not see it coming
	s := open(t, cfg)
	must(t, s.Logs.StoreLogs(entries(1, 9, 1)))
	if _, err := takeSnapshot(s, 4, 1, 100<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := takeSnapshot(s, 9, 1, 20<<20); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("%v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "other"), make([]byte, 6<<20), 0o600)) // its room is free again
	must(t, s.Logs.StoreLogs(entries(10, 12, 1)))
	usable, err := s.Snapshots.List()
	if err != nil || len(usable) != 1 || usable[0].Index != 4 {
		t.Errorf("%v, %v", usable, err)
	}
	noneUnfinished(t, dir)
	if failures := testGauge(t, cfg, "leasenode_snapshot_failures_total"); failures != 1 {
		t.Errorf("%v failures are counted", failures)
	}
	closeStores(t, s)
}
