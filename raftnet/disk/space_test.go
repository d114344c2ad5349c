package disk_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

const reserve = 64 << 20

func TestAFullDiskRefusesWhatGrowsAndNothingElse(t *testing.T) {
	onEach(t, testAFullDiskRefusesWhatGrowsAndNothingElse)
}

func testAFullDiskRefusesWhatGrowsAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		free.Store(1 << 40)
		dir := t.TempDir()
		cfg := config(t, dir)
		cfg.Free = func(string) (uint64, error) { return free.Load(), nil }
		s := open(t, cfg)
		must(t, s.Logs.StoreLogs(entries(1, 9, 1)))
		if _, err := takeSnapshot(s, 5, 1, 8); err != nil {
			t.Fatal(err)
		}
		free.Store(reserve - 1)
		time.Sleep(250 * time.Millisecond)
		for what, err := range map[string]error{
			"StoreLogs": s.Logs.StoreLogs(entries(10, 12, 1)),
			"cutting":   s.Logs.DeleteRange(9, 9),
			"Create":    func() error { _, err := takeSnapshot(s, 9, 1, 8); return err }(),
		} {
			if full, ok := errors.AsType[*disk.FullError](err); !ok || full.Free != reserve-1 || full.Reserve != reserve+reserve/4 {
				t.Errorf("%s: %v", what, err)
			}
		}
		if !s.Full() || s.Err() != nil || testGauge(t, cfg, "leasenode_disk_full") != 1 {
			t.Errorf("full %t, %v", s.Full(), s.Err())
		}
		must(t, castVote(s, 3, "n2"))
		must(t, s.Logs.DeleteRange(1, 5))
		checkLog(t, s.Logs, entries(6, 9, 1))

		free.Store(reserve + 1) // somewhat more is needed to begin again
		time.Sleep(250 * time.Millisecond)
		if !s.Full() {
			t.Error("it flaps")
		}
		free.Store(2 * reserve)
		time.Sleep(250 * time.Millisecond)
		must(t, s.Logs.StoreLogs(entries(10, 12, 1)))
		if s.Full() {
			t.Error("it is still full")
		}
		checkLog(t, open(t, config(t, crashed(t, dir))).Logs, entries(6, 12, 1))
		closeStores(t, s)
	})
}

// raft would go on as if what was cut off were there.
func TestWhatReplacesACutTailIsNotRefused(t *testing.T) {
	onEach(t, testWhatReplacesACutTailIsNotRefused)
}

func testWhatReplacesACutTailIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		free.Store(plenty)
		cfg := config(t, t.TempDir())
		cfg.Free = func(string) (uint64, error) { return free.Load(), nil }
		s := open(t, cfg)
		must(t, s.Logs.StoreLogs(entries(1, 9, 1)))
		must(t, s.Logs.DeleteRange(8, 9))
		free.Store(0)
		time.Sleep(time.Second)
		must(t, s.Logs.StoreLogs(entries(8, 9, 2)))
		if _, ok := errors.AsType[*disk.FullError](s.Logs.StoreLog(entry(10, 2))); !ok {
			t.Error("what comes after is not refused")
		}
		closeStores(t, s)
	})
}

// Between two looks at the disk, what is written counts.
func TestABurstDoesNotRunPastTheReserve(t *testing.T) { onEach(t, testABurstDoesNotRunPastTheReserve) }

func testABurstDoesNotRunPastTheReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Uint64
		cfg := config(t, t.TempDir())
		cfg.Reserve = 1 << 20
		cfg.Free = func(string) (uint64, error) { return 4<<20 - min(4<<20, written.Load()), nil }
		s := open(t, cfg)
		var err error
		for i := uint64(1); err == nil; i++ {
			big := entry(i, 1)
			big.Data = make([]byte, 100<<10)
			if err = s.Logs.StoreLog(big); err == nil {
				written.Add(100 << 10)
			}
		}
		if _, ok := errors.AsType[*disk.FullError](err); !ok || written.Load() > 3<<20+200<<10 || written.Load() < 2<<20 {
			t.Errorf("%v after %d bytes", err, written.Load())
		}
		closeStores(t, s)
	})
}

// The reserve has to have room for twice the biggest batch.
func TestTheReserveGrowsWithTheBatches(t *testing.T) {
	cfg := config(t, t.TempDir())
	cfg.Reserve = 1 << 20
	cfg.Free = func(string) (uint64, error) { return 5 << 20, nil }
	s := open(t, cfg)
	big := entry(1, 1)
	big.Data = make([]byte, 3<<20)
	full, ok := errors.AsType[*disk.FullError](s.Logs.StoreLogs([]*raft.Log{big}))
	if !ok || full.Reserve < 6<<20 {
		t.Errorf("%v", full)
	}
}

func TestASpareFileIsGivenBackAndMadeAgain(t *testing.T) {
	onEach(t, testASpareFileIsGivenBackAndMadeAgain)
}

func testASpareFileIsGivenBackAndMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		free.Store(1 << 40)
		cfg := config(t, t.TempDir())
		cfg.Free = func(string) (uint64, error) { return free.Load(), nil }
		s := open(t, cfg)
		spare := func(want bool) {
			t.Helper()
			time.Sleep(time.Second)
			info, err := os.Stat(filepath.Join(cfg.Dir, disk.SpareFile))
			if (err == nil) != want || want && info.Size() != 4<<20 {
				t.Errorf("there is a spare file: %v, %v; want %t", info, err, want)
			}
		}
		spare(true)
		free.Store(10 << 20) // full, but not to the last byte
		spare(true)
		free.Store(1 << 20)
		spare(false)
		free.Store(5 << 20)
		spare(false)
		free.Store(1 << 40)
		spare(true)
		closeStores(t, s)
	})
}

func TestAStartWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Uint64
		cfg := config(t, t.TempDir())
		path := filepath.Join(cfg.Dir, disk.SpareFile)
		must(t, os.WriteFile(path, make([]byte, 4<<20), 0o600))
		cfg.Free = func(string) (uint64, error) {
			if _, err := os.Stat(path); err != nil {
				return free.Load(), nil
			}
			return 0, nil
		}
		free.Store(4 << 20)
		began := time.Now()
		must(t, disk.AwaitRoom(t.Context(), cfg))
		if _, err := os.Stat(path); err == nil || time.Since(began) > 0 {
			t.Errorf("the spare file: %v, after %v", err, time.Since(began))
		}
		free.Store(0)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := disk.AwaitRoom(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without room: %v", err)
		}
		began = time.Now()
		time.AfterFunc(10*time.Second, func() { free.Store(1 << 30) })
		must(t, disk.AwaitRoom(t.Context(), cfg))
		if waited := time.Since(began); waited < 10*time.Second || waited > 12*time.Second {
			t.Errorf("it waited for %v", waited)
		}
	})
}

func TestIfTheSpaceIsNotKnownNothingIsRefused(t *testing.T) {
	onEach(t, testIfTheSpaceIsNotKnownNothingIsRefused)
}

func testIfTheSpaceIsNotKnownNothingIsRefused(t *testing.T) {
	cfg := config(t, t.TempDir())
	cfg.Free = func(string) (uint64, error) { return 0, errInjected }
	s := open(t, cfg)
	must(t, s.Logs.StoreLogs(entries(1, 9, 1)))
	if s.Full() {
		t.Error("it is full")
	}
	if err := disk.AwaitRoom(t.Context(), cfg); !errors.Is(err, errInjected) {
		t.Errorf("%v", err)
	}
}
