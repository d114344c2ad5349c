package disk_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// damageSeeds is how many ways of damage each test tries.
const damageSeeds = 600

// original is a directory with something of everything, and what it has.
type original struct {
	dir  string
	log  []*raft.Log
	vote vote
}

// newOriginal makes one in which the pages of earlier transactions are still lying
// around: an old page in the place of a new one is the damage that is hardest to see.
func newOriginal(t *testing.T) *original {
	t.Helper()
	o := &original{dir: t.TempDir(), vote: vote{9, 9, "n2"}}
	s := open(t, config(t, o.dir))
	must(t, setTerm(s, 1))
	for i := uint64(1); i <= 80; i += 4 {
		must(t, s.Logs.StoreLogs(entries(i, i+3, 1)))
		must(t, castVote(s, i, "n1"))
	}
	big := entry(81, 2)
	big.Data = make([]byte, 20_000)
	must(t, s.Logs.StoreLog(big))
	for _, index := range []uint64{30, 50} {
		if _, err := takeSnapshot(s, index, 1, 3000); err != nil {
			t.Fatal(err)
		}
	}
	must(t, s.Logs.DeleteRange(1, 20))
	must(t, s.Logs.StoreLogs(entries(82, 90, 2)))
	must(t, s.Logs.DeleteRange(88, 90))
	must(t, setTerm(s, 9))
	must(t, castVote(s, 9, "n2"))
	must(t, s.Logs.StoreLogs(entries(88, 89, 9)))
	closeStores(t, s)
	o.log = append(entries(21, 80, 1), big)
	o.log = append(append(o.log, entries(82, 87, 2)...), entries(88, 89, 9)...)
	return o
}

// check opens dir and returns an error unless it has exactly what the original has, or
// refuses with an error that names its file and the way out.
func (o *original) check(t *testing.T, dir string) (refused bool, err error) {
	t.Helper()
	s, err := disk.Open(config(t, dir))
	if corrupt, ok := errors.AsType[*disk.CorruptError](err); ok {
		if corrupt.File != filepath.Join(dir, disk.LogFile) || corrupt.Place == "" || !strings.Contains(err.Error(), "put back") {
			return true, fmt.Errorf("it says only: %w", err)
		}
		return true, nil
	}
	if err != nil {
		return true, fmt.Errorf("an error of another type: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if got := readVote(t, s); got != o.vote {
		return false, fmt.Errorf("it reads the vote %+v, want %+v", got, o.vote)
	}
	return false, compareLog(s.Logs, o.log)
}

// damage changes b as r has it: mostly one bit, mostly where it matters.
func damage(r *rand.Rand, b []byte) ([]byte, string) {
	const pageSize = 4096
	switch kind := r.IntN(20); {
	case kind == 0:
		n := r.IntN(len(b))
		return b[:n], fmt.Sprintf("cut off at %d", n)
	case kind == 1:
		at := r.IntN(len(b))
		n := min(len(b)-at, 1+r.IntN(8192))
		clear(b[at : at+n])
		return b, fmt.Sprintf("%d zeros at %d", n, at)
	case kind == 2:
		from, to := r.IntN(len(b)/pageSize), r.IntN(len(b)/pageSize)
		copy(b[to*pageSize:(to+1)*pageSize], b[from*pageSize:])
		return b, fmt.Sprintf("page %d in the place of %d", from, to)
	case kind < 12: // the beginning of a page: header and elements
		at := r.IntN(len(b)/pageSize)*pageSize + r.IntN(400)
		bit := r.IntN(8)
		b[at] ^= 1 << bit
		return b, fmt.Sprintf("bit %d of %d", bit, at)
	default:
		at, bit := r.IntN(len(b)), r.IntN(8)
		b[at] ^= 1 << bit
		return b, fmt.Sprintf("bit %d of %d", bit, at)
	}
}

func TestADamagedLogIsRightOrRefused(t *testing.T) {
	o := newOriginal(t)
	whole, err := os.ReadFile(filepath.Join(o.dir, disk.LogFile))
	must(t, err)
	dir := crashed(t, o.dir)
	path := filepath.Join(dir, disk.LogFile)
	refusals := 0
	for seed := range uint64(damageSeeds) {
		bytes, what := damage(rand.New(rand.NewPCG(seed, 1)), append([]byte{}, whole...))
		must(t, os.WriteFile(path, bytes, 0o600))
		refused, err := o.check(t, dir)
		if err != nil {
			t.Errorf("seed %d, %s: %v", seed, what, err)
		}
		if refused {
			refusals++
		}
		report, err := disk.Inspect(dir)
		if err != nil || (report.Log != nil) != refused {
			t.Errorf("seed %d, %s: refused %t, inspected: %v, %v", seed, what, refused, report, err)
		}
	}
	if refusals < damageSeeds/20 {
		t.Errorf("only %d of %d were refused: the damage does not hit what matters", refusals, damageSeeds)
	}
	must(t, os.WriteFile(path, whole, 0o600))
	if refused, err := o.check(t, dir); refused || err != nil {
		t.Errorf("undamaged: refused %t, %v", refused, err)
	}
}

func TestFilesThatAreNoLogAreRefused(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "short": "x", "text": strings.Repeat("a log, surely\n", 1000), "zeros": string(make([]byte, 1<<20)),
	} {
		dir := t.TempDir()
		must(t, os.WriteFile(filepath.Join(dir, disk.LogFile), []byte(content), 0o600))
		_, err := disk.Open(config(t, dir))
		if _, ok := errors.AsType[*disk.CorruptError](err); !ok || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		after, err := os.ReadFile(filepath.Join(dir, disk.LogFile))
		if err != nil || string(after) != content {
			t.Errorf("%s: the file was changed", name)
		}
	}
	cfg := config(t, t.TempDir())
	cfg.Begun = true
	_, err := disk.Open(cfg)
	if _, ok := errors.AsType[*disk.CorruptError](err); !ok {
		t.Errorf("a log that is missing: %v", err)
	}
}

// Each damaged snapshot is passed over for the one before it, which the log joins on
// to.
func TestADamagedSnapshotIsRightOrPassedOver(t *testing.T) {
	o := newOriginal(t)
	names, err := filepath.Glob(filepath.Join(o.dir, "snapshots", "1-50-*", "*"))
	if err != nil || len(names) != 3 {
		t.Fatalf("%v, %v", names, err)
	}
	for seed := range uint64(damageSeeds / 4) {
		r := rand.New(rand.NewPCG(seed, 2))
		dir := crashed(t, o.dir)
		name := names[r.IntN(len(names))]
		path := filepath.Join(dir, strings.TrimPrefix(name, o.dir))
		whole, err := os.ReadFile(path)
		must(t, err)
		at := r.IntN(len(whole))
		if r.IntN(4) == 0 {
			must(t, os.Truncate(path, int64(at)))
		} else {
			whole[at] ^= 1 << r.IntN(8)
			must(t, os.WriteFile(path, whole, 0o600))
		}
		s := open(t, config(t, dir))
		usable, err := s.Snapshots.List()
		must(t, err)
		if len(usable) != 1 || usable[0].Index != 30 {
			t.Errorf("seed %d, %s at %d: %+v are usable", seed, filepath.Base(path), at, usable)
		}
		if _, _, err := s.Snapshots.Open(filepath.Base(filepath.Dir(path))); err == nil {
			t.Errorf("seed %d, %s at %d: it opens", seed, filepath.Base(path), at)
		}
		closeStores(t, s)
	}
}
