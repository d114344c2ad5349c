package disk_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/raftnet/disk"
	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

// walFiles returns the files of the log in dir, which is kept in files, by their names.
func walFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	names, err := disk.LogFiles(dir)
	must(t, err)
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		files[name] = content
	}
	return files
}

// put replaces the files of the log in dir.
func put(t *testing.T, dir string, files map[string][]byte) {
	t.Helper()
	must(t, os.RemoveAll(filepath.Join(dir, disk.WALDir)))
	must(t, os.Mkdir(filepath.Join(dir, disk.WALDir), 0o700))
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
}

// damageWAL changes a file of a log as r has it.
func damageWAL(r *rand.Rand, files map[string][]byte) string {
	names := slices.Sorted(maps.Keys(files))
	name := names[r.IntN(len(names))]
	b := bytes.Clone(files[name])
	files[name] = b
	at := r.IntN(len(b))
	if used := bytes.LastIndexFunc(b, func(c rune) bool { return c != 0 }); r.IntN(4) > 0 {
		at = r.IntN(used + 1)
	}
	const block = 512
	switch kind := r.IntN(12); kind {
	case 0:
		files[name] = b[:at]
		return fmt.Sprintf("%s cut off at %d", name, at)
	case 1:
		n := min(len(b)-at, 1+r.IntN(8192))
		clear(b[at : at+n])
		return fmt.Sprintf("%d zeros at %d of %s", n, at, name)
	case 2:
		other := files[names[r.IntN(len(names))]]
		from := r.IntN(len(other)/block) * block
		copy(b[at/block*block:], other[from:from+block])
		return fmt.Sprintf("another block in the place of that at %d of %s", at, name)
	case 3:
		delete(files, name)
		return "without " + name
	default:
		bit := r.IntN(8)
		b[at] ^= 1 << bit
		return fmt.Sprintf("bit %d of %d of %s", bit, at, name)
	}
}

func TestADamagedLog(t *testing.T) {
	t.Run(string(disk.LogWAL), func(t *testing.T) {
		o := newOriginal(t)
		whole := walFiles(t, o.dir)
		dir := quickDir(t)
		must(t, os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(o.dir)))
		dir = filepath.Join(dir, "copy")
		refusals := 0
		for seed := range uint64(damageSeeds / 2) {
			files := maps.Clone(whole)
			what := damageWAL(rand.New(rand.NewPCG(seed, 1)), files)
			put(t, dir, files)
			report, err := disk.Inspect(dir)
			must(t, err)
			refused, err := o.check(t, dir)
			if err != nil {
				t.Errorf("seed %d, %s: %v", seed, what, err)
			}
			if refused {
				refusals++
			}
			if (report.Log != nil) != refused {
				t.Errorf("seed %d, %s: refused %t, inspected: %v", seed, what, refused, report.Log)
			}
			o.checkReport(t, report, what)
		}
		if refusals < damageSeeds/2*9/10 {
			t.Errorf("only %d of %d were refused", refusals, damageSeeds/2)
		}
		put(t, dir, whole)
		if refused, err := o.check(t, dir); refused || err != nil {
			t.Errorf("undamaged: refused %t, %v", refused, err)
		}
	})
}

// checkReport fails the test if a report on a damaged log says anything that is not so.
func (o *original) checkReport(t *testing.T, r *disk.Report, what string) {
	t.Helper()
	if r.Term == 0 && r.Last == 0 && r.Verified == 0 {
		return
	}
	first, last := o.log[0].Index, o.log[len(o.log)-1].Index
	if r.Term != o.vote.current || r.VoteTerm != o.vote.term || r.VoteCandidate != o.vote.candidate || r.First != first || r.Last != last {
		t.Errorf("%s: it is reported as %+v", what, r)
	}
	if r.Verified > 0 && r.VerifiedTerm != o.log[r.Verified-first].Term {
		t.Errorf("%s: entry %d is reported with term %d", what, r.Verified, r.VerifiedTerm)
	}
}

func TestInspectNamesTheFirstDamagedEntryOfFiles(t *testing.T) {
	t.Run(string(disk.LogWAL), func(t *testing.T) {
		o := newOriginal(t)
		files := walFiles(t, o.dir)
		damaged := false
		for name, content := range files {
			if at := bytes.Index(content, []byte("entry 45 of ter")); at >= 0 {
				content[at] = 'E'
				must(t, os.WriteFile(filepath.Join(o.dir, name), content, 0o600))
				damaged = true
			}
		}
		r := inspect(t, o.dir)
		corrupt, ok := errors.AsType[*disk.CorruptError](r.Log)
		// The record has entries 45 to 48.
		if !damaged || !ok || corrupt.Index != 45 || r.Verified != 44 || r.Last != 89 || r.Term != 9 || !strings.Contains(corrupt.File, ".seg") {
			t.Errorf("%+v", r)
		}
		must(t, os.RemoveAll(filepath.Join(o.dir, disk.WALDir, "mark")))
		r = inspect(t, o.dir)
		if r.Log == nil || !strings.Contains(r.Log.Error(), "mark") || r.Term != 0 {
			t.Errorf("without a mark: %+v", r)
		}
	})
}

// What a crash leaves of a write is any part of its blocks.
func TestAnyPartOfARecordIsNoneOfIt(t *testing.T) {
	t.Run(string(disk.LogWAL), func(t *testing.T) {
		dir := quickDir(t)
		s := open(t, config(t, dir))
		before := model{log: entries(1, 30, 1)}
		must(t, s.Logs.StoreLogs(before.log))
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 4))
			crash := crashed(t, dir)
			old := walFiles(t, crash)
			after, err := before.step(r, s)
			must(t, err)
			crash = crashed(t, dir)
			written := walFiles(t, crash)
			for try := range 6 {
				want := &before
				state := map[string][]byte{}
				for name, content := range written {
					if state[name] = content; try > 0 && old[name] != nil {
						state[name] = tearRecord(r, old[name], content)
					}
					if filepath.Base(name) == "mark" && try > 0 {
						state[name] = old[name] // it moves only once the record is durable
					}
				}
				if try == 0 {
					want = &after
				}
				put(t, crash, state)
				again, err := disk.Open(config(t, crash))
				must(t, err)
				if err := want.has(t, again); err != nil && after.has(t, again) != nil {
					t.Errorf("seed %d, try %d: %v", seed, try, err)
				}
				closeStores(t, again)
			}
			before = after
		}
	})
}

// tearRecord returns old with some of the blocks of written.
func tearRecord(r *rand.Rand, old, written []byte) []byte {
	const block = 512
	state := bytes.Clone(old)
	for at := 0; at < len(written); at += block {
		if r.IntN(2) == 0 {
			copy(state[at:at+block], written[at:])
		}
	}
	return state
}

// Segments of which nothing is needed go, and with them the room they take.
func TestTheFilesOfADeletedFrontAreRemoved(t *testing.T) {
	t.Run(string(disk.LogWAL), func(t *testing.T) {
		dir := t.TempDir()
		cfg := config(t, dir)
		s := open(t, cfg)
		big := make([]byte, 60_000)
		for i := uint64(1); i <= 30; i++ {
			e := entry(i, 1)
			e.Data = big
			must(t, s.Logs.StoreLog(e))
		}
		if _, err := takeSnapshot(s, 29, 1, 8); err != nil {
			t.Fatal(err)
		}
		must(t, s.Logs.DeleteRange(1, 29))
		must(t, castVote(s, 4, "n3"))
		eventually(t, "the files to be removed", func() bool {
			_, err := os.Stat(filepath.Join(dir, disk.WALDir, "00000002.seg"))
			return err != nil
		})
		if left := testGauge(t, cfg, "leasenode_log_bytes"); left < 60_000 {
			t.Errorf("the log has %v bytes", left)
		}
		closeStores(t, s)
		again := open(t, config(t, dir))
		if first, err := again.Logs.FirstIndex(); first != 30 || err != nil {
			t.Errorf("the log begins at %d, %v", first, err)
		}
		if got := readVote(t, again); got.candidate != "n3" {
			t.Errorf("%+v", got)
		}
	})
}

func TestALongLogIsVerified(t *testing.T) {
	t.Run(string(disk.LogWAL), func(t *testing.T) {
		dir := t.TempDir()
		s := open(t, config(t, dir))
		must(t, s.Logs.StoreLogs(entries(1, 20_000, 1)))
		closeStores(t, s)
		began := time.Now()
		s = open(t, config(t, dir))
		t.Logf("20,000 entries were verified in %v", time.Since(began))
		checkLog(t, s.Logs, entries(1, 20_000, 1))
	})
}

// TestTheMarkIsCopiedFirst since what it speaks of has to be in the copy.
func TestTheMarkIsCopiedFirst(t *testing.T) {
	cfg := config(t, t.TempDir())
	cfg.Log = disk.LogWAL
	open(t, cfg)
	names, err := disk.LogFiles(cfg.Dir)
	if err != nil || len(names) < 2 || filepath.Base(names[0]) != wal.MarkName {
		t.Errorf("got %q, %v", names, err)
	}
}
