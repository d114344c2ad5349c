package disk_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// tree returns everything in dir, with its times.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[path] = info.ModTime().Format(time.RFC3339Nano)
		if !d.IsDir() {
			content, err := os.ReadFile(path)
			found[path] += string(content)
			return err
		}
		return nil
	}))
	return found
}

// inspect inspects dir and fails the test if that changed anything.
func inspect(t *testing.T, dir string) *disk.Report {
	t.Helper()
	before := tree(t, dir)
	report, err := disk.Inspect(dir)
	must(t, err)
	after := tree(t, dir)
	if len(before) != len(after) {
		t.Errorf("there were %d files and are %d", len(before), len(after))
	}
	for path, content := range before {
		if after[path] != content {
			t.Errorf("%s was changed", path)
		}
	}
	return report
}

func TestInspect(t *testing.T) { onEach(t, testInspect) }

func testInspect(t *testing.T) {
	o := newOriginal(t)
	must(t, os.Mkdir(filepath.Join(o.dir, "snapshots", "9-99-1.tmp"), 0o700))
	r := inspect(t, o.dir)
	if r.Term != 9 || r.VoteTerm != 9 || r.VoteCandidate != "n2" || r.First != 21 || r.Last != 89 || r.Verified != 89 || r.VerifiedTerm != 9 || r.Covered != 50 {
		t.Errorf("%+v", r)
	}
	if r.Log != nil || r.Gap != nil || len(r.Unfinished) != 1 || len(r.Snapshots) != 2 {
		t.Errorf("%+v", r)
	}
	newest := r.Snapshots[0]
	if newest.Index != 50 || newest.Term != 1 || newest.Size != 3000 || newest.Damage != nil || time.Since(newest.Created) > time.Hour {
		t.Errorf("%+v", newest)
	}
}

func TestInspectNamesTheFirstDamagedEntry(t *testing.T) {
	o := newOriginal(t)
	path := filepath.Join(o.dir, disk.LogFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	damaged := false
	for at := range whole { // in every copy of it, old pages too
		if string(whole[at:min(at+15, len(whole))]) == "entry 45 of ter" {
			whole[at] = 'E'
			damaged = true
		}
	}
	must(t, os.WriteFile(path, whole, 0o600))
	r := inspect(t, o.dir)
	corrupt, ok := errors.AsType[*disk.CorruptError](r.Log)
	if !damaged || !ok || corrupt.Index != 45 || r.Verified != 44 || r.Last != 89 || r.Term != 9 {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{r.Snapshots[0].ID, r.Snapshots[1].ID} {
		must(t, os.WriteFile(filepath.Join(o.dir, "snapshots", name, "meta.json"), []byte("{}"), 0o600))
	}
	r = inspect(t, o.dir)
	gap, ok := errors.AsType[*disk.GapError](r.Gap)
	if !ok || gap.From != 1 || gap.To != 20 || r.Snapshots[0].Damage == nil || r.Snapshots[1].Damage == nil {
		t.Errorf("%+v", r)
	}
}

func TestOnlyAStoppedNodeIsInspected(t *testing.T) { onEach(t, testOnlyAStoppedNodeIsInspected) }

func testOnlyAStoppedNodeIsInspected(t *testing.T) {
	dir := t.TempDir()
	s := open(t, config(t, dir))
	if _, err := disk.Inspect(dir); err == nil {
		t.Error("a running one is inspected")
	}
	if _, err := disk.Open(config(t, dir)); err == nil {
		t.Error("a running one is opened again")
	}
	closeStores(t, s)
	if r := inspect(t, dir); r.Log != nil || r.Last != 0 || r.Gap != nil {
		t.Errorf("%+v", r)
	}
	if _, err := disk.Inspect(t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an empty directory: %v", err)
	}
}

func TestAfterCloseAllIsRefused(t *testing.T) { onEach(t, testAfterCloseAllIsRefused) }

func testAfterCloseAllIsRefused(t *testing.T) {
	s := open(t, config(t, t.TempDir()))
	must(t, s.Logs.StoreLogs(entries(1, 3, 1)))
	closeStores(t, s)
	for _, err := range []error{s.Logs.StoreLog(entry(4, 1)), s.Logs.GetLog(1, entry(0, 0)), setTerm(s, 4), s.Logs.DeleteRange(1, 3)} {
		if !errors.Is(err, disk.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
	if s.Err() != nil {
		t.Error(s.Err())
	}
}
