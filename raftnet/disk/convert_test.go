package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// otherKind is the kind of log that kindOf is not.
func otherKind(t *testing.T) disk.LogKind {
	if kindOf(t) == disk.LogWAL {
		return disk.LogBolt
	}
	return disk.LogWAL
}

// logsIn returns the names in dir that have to do with logs.
func logsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, name := range []string{disk.LogFile, disk.WALDir} {
		for _, end := range []string{"", ".new", ".old"} {
			if _, err := os.Lstat(filepath.Join(dir, name+end)); err == nil {
				names[name+end] = true
			}
		}
	}
	return names
}

// opensAs opens dir, with the kind of log it is to have, and fails the test unless it has
// what the original has, in a log of the kind want.
func (o *original) opensAs(t *testing.T, dir string, wanted, want disk.LogKind) {
	t.Helper()
	cfg := config(t, dir)
	cfg.Log, cfg.Begun = wanted, true
	s, err := disk.Open(cfg)
	must(t, err)
	checkLog(t, s.Logs, o.log)
	if got := readVote(t, s); got != o.vote {
		t.Errorf("the vote is %+v, want %+v", got, o.vote)
	}
	closeStores(t, s)
	path, kind, err := disk.FindLog(dir)
	if err != nil || kind != want || len(logsIn(t, dir)) != 1 || filepath.Dir(path) != dir {
		t.Errorf("there are %v, %s, %v; want %s", logsIn(t, dir), kind, err, want)
	}
}

func TestALogIsConverted(t *testing.T) { onEach(t, testALogIsConverted) }

func testALogIsConverted(t *testing.T) {
	o := newOriginal(t)
	before := *inspect(t, o.dir)
	o.opensAs(t, o.dir, "", kindOf(t)) // nothing is wanted: it stays
	o.opensAs(t, o.dir, otherKind(t), otherKind(t))
	after := *inspect(t, o.dir)
	if after.First != before.First || after.Last != before.Last || after.Verified != before.Verified || after.Covered != before.Covered || after.VoteCandidate != before.VoteCandidate {
		t.Errorf("it has %+v, and had %+v", after, before)
	}
	o.opensAs(t, o.dir, kindOf(t), kindOf(t))
}

func TestAnEmptyLogIsConverted(t *testing.T) { onEach(t, testAnEmptyLogIsConverted) }

func testAnEmptyLogIsConverted(t *testing.T) {
	o := &original{dir: t.TempDir(), vote: vote{3, 3, "n3"}}
	s := open(t, config(t, o.dir))
	must(t, setTerm(s, 3))
	must(t, castVote(s, 3, "n3"))
	closeStores(t, s)
	o.opensAs(t, o.dir, otherKind(t), otherKind(t))
}

func TestALongLogIsConverted(t *testing.T) { onEach(t, testALongLogIsConverted) }

func testALongLogIsConverted(t *testing.T) {
	o := &original{dir: quickDir(t)}
	s := open(t, config(t, o.dir))
	for i := uint64(1); i < 60; i++ {
		e := entry(i, 1)
		e.Data = make([]byte, 70_000)
		o.log = append(o.log, e)
	}
	must(t, s.Logs.StoreLogs(o.log))
	closeStores(t, s)
	o.opensAs(t, o.dir, otherKind(t), otherKind(t))
}

// Whatever a conversion leaves that a crash ends, a start finishes or undoes it, and a
// stopped node can be inspected as it is.
func TestAnInterruptedConversionIsFinishedOrUndone(t *testing.T) {
	onEach(t, testAnInterruptedConversionIsFinishedOrUndone)
}

func testAnInterruptedConversionIsFinishedOrUndone(t *testing.T) {
	o := newOriginal(t)
	done := crashed(t, o.dir)
	o.opensAs(t, done, otherKind(t), otherKind(t))
	from, to := disk.LogFile, disk.WALDir
	if kindOf(t) == disk.LogWAL {
		from, to = to, from
	}
	move := func(t *testing.T, dir, old, name string) {
		t.Helper()
		must(t, os.Rename(filepath.Join(dir, old), filepath.Join(dir, name)))
	}
	for name, crash := range map[string]struct {
		leave func(t *testing.T, dir string)
		// kind is what it has if nothing is wanted.
		kind disk.LogKind
	}{
		"while the new one is built": {func(t *testing.T, dir string) {
			must(t, os.CopyFS(filepath.Join(dir, "made"), os.DirFS(done)))
			move(t, dir, "made/"+to, to+".new")
			must(t, os.RemoveAll(filepath.Join(dir, "made")))
		}, kindOf(t)},
		"when the old one was renamed": {func(t *testing.T, dir string) {
			move(t, dir, from, from+".old")
			must(t, os.CopyFS(filepath.Join(dir, "made"), os.DirFS(done)))
			move(t, dir, "made/"+to, to+".new")
			must(t, os.RemoveAll(filepath.Join(dir, "made")))
		}, kindOf(t)},
		"when the new one has its name": {func(t *testing.T, dir string) {
			move(t, dir, from, from+".old")
			must(t, os.CopyFS(filepath.Join(dir, "made"), os.DirFS(done)))
			move(t, dir, "made/"+to, to)
			must(t, os.RemoveAll(filepath.Join(dir, "made")))
		}, otherKind(t)},
		"while the old one is removed": {func(t *testing.T, dir string) {
			must(t, os.CopyFS(filepath.Join(dir, "made"), os.DirFS(done)))
			move(t, dir, "made/"+to, to)
			must(t, os.RemoveAll(filepath.Join(dir, "made")))
			must(t, os.RemoveAll(filepath.Join(dir, from)))
			must(t, os.Mkdir(filepath.Join(dir, from+".old"), 0o700))
		}, otherKind(t)},
	} {
		t.Run(name, func(t *testing.T) {
			for _, wanted := range append(disk.LogKinds(), "") {
				want := wanted
				if wanted == "" {
					want = crash.kind
				}
				dir := crashed(t, o.dir)
				crash.leave(t, dir)
				if r := inspect(t, dir); r.Log != nil || r.Last != o.log[len(o.log)-1].Index || r.VoteCandidate != o.vote.candidate {
					t.Errorf("%+v", r)
				}
				o.opensAs(t, dir, wanted, want)
			}
		})
	}
}

// A log that is damaged is not converted, and two logs are refused; nothing is removed.
func TestADamagedLogIsNotConverted(t *testing.T) { onEach(t, testADamagedLogIsNotConverted) }

func testADamagedLogIsNotConverted(t *testing.T) {
	o := newOriginal(t)
	both := crashed(t, o.dir)
	converted := crashed(t, o.dir)
	o.opensAs(t, converted, otherKind(t), otherKind(t))
	for _, name := range []string{disk.LogFile, disk.WALDir} {
		if _, err := os.Stat(filepath.Join(converted, name)); err == nil {
			must(t, os.Rename(filepath.Join(converted, name), filepath.Join(both, name)))
		}
	}
	files, err := disk.LogFiles(o.dir)
	must(t, err)
	damaged, err := os.OpenFile(filepath.Join(o.dir, files[0]), os.O_RDWR, 0)
	must(t, err)
	if _, err := damaged.WriteAt([]byte("damage"), 30); err != nil {
		t.Fatal(err)
	}
	must(t, damaged.Close())
	for what, dir := range map[string]string{"damaged": o.dir, "both": both} {
		had := tree(t, dir)
		for _, wanted := range append(disk.LogKinds(), "") {
			cfg := config(t, dir)
			cfg.Log = wanted
			if _, err := disk.Open(cfg); !isCorrupt(err) {
				t.Errorf("%s, as %q: %v", what, wanted, err)
			}
		}
		has := tree(t, dir)
		for path, content := range had {
			if has[path] != content && path != dir {
				t.Errorf("%s: %s was changed", what, path)
			}
		}
	}
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[*disk.CorruptError](err)
	return ok
}

func TestKindsOfLogs(t *testing.T) {
	cfg := config(t, t.TempDir())
	cfg.Log = "paper"
	if _, err := disk.Open(cfg); err == nil {
		t.Error("a kind that is not known is taken")
	}
	cfg.Log = ""
	s := open(t, cfg)
	must(t, s.Logs.StoreLogs([]*raft.Log{entry(1, 1)}))
	closeStores(t, s)
	if _, kind, err := disk.FindLog(cfg.Dir); kind != disk.LogBolt || err != nil {
		t.Errorf("without a word it is kept in %q, %v", kind, err)
	}
	if _, _, err := disk.FindLog(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
	for _, kind := range disk.LogKinds() {
		missing := config(t, t.TempDir())
		missing.Begun, missing.Log = true, kind
		if _, err := disk.Open(missing); !isCorrupt(err) {
			t.Errorf("a log that is missing: %v", err)
		}
	}
}
