package disk_test

import (
	"bytes"
	"encoding/binary"
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

// pageSize is that of the files that are damaged here.
var pageSize = os.Getpagesize()

// damageSeeds is how many ways of damage each test tries.
const damageSeeds = 1000

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
		wrong := corrupt.File != filepath.Join(dir, disk.LogFile)
		if kindOf(t) == disk.LogWAL {
			wrong = !strings.HasPrefix(corrupt.File, filepath.Join(dir, disk.WALDir))
		}
		if wrong || corrupt.Place == "" || !strings.Contains(err.Error(), "put back") {
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
	case kind == 3: // a meta page
		at, bit := r.IntN(2)*pageSize+r.IntN(80), r.IntN(8)
		b[at] ^= 1 << bit
		return b, fmt.Sprintf("bit %d of %d", bit, at)
	case kind < 13: // the beginning of a page: header and elements
		at := r.IntN(len(b)/pageSize)*pageSize + r.IntN([]int{16, 400}[r.IntN(2)])
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
		damaged, what := damage(rand.New(rand.NewPCG(seed, 1)), append([]byte{}, whole...))
		must(t, os.WriteFile(path, damaged, 0o600))
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

// A disk that loses one write leaves an earlier page in the place of a later one.
func TestALostWriteIsRightOrRefused(t *testing.T) {
	const metas = 2
	dir := quickDir(t)
	path := filepath.Join(dir, disk.LogFile)
	s := open(t, config(t, dir))
	m := model{log: entries(1, 60, 1)}
	must(t, s.Logs.StoreLogs(m.log))
	var states [][]byte
	r := rand.New(rand.NewPCG(5, 5))
	for range 40 {
		var err error
		m, err = m.step(r, s)
		must(t, err)
		state, err := os.ReadFile(path)
		must(t, err)
		states = append(states, state)
	}
	closeStores(t, s)
	last, refusals := states[len(states)-1], 0
	for n, state := range states {
		for at := metas * pageSize; at < min(len(state), len(last)); at += pageSize {
			if bytes.Equal(state[at:at+pageSize], last[at:at+pageSize]) {
				continue
			}
			lost := append([]byte{}, last...)
			copy(lost[at:], state[at:at+pageSize])
			must(t, os.WriteFile(path, lost, 0o600))
			o := original{log: m.log, vote: m.vote}
			refused, err := o.check(t, dir)
			if err != nil {
				t.Errorf("page %d of step %d: %v", at/pageSize, n, err)
			}
			if refused {
				refusals++
			}
		}
	}
	if refusals < len(states)/2 {
		t.Errorf("only %d were refused", refusals)
	}
}

// A page of the same entries as an earlier leader wrote them is whole in itself.
func TestEntriesOfAnotherLeaderAreRefused(t *testing.T) {
	for name, n := range map[string]uint64{"in one page of many": 300, "in the only page": 20} {
		dir := t.TempDir()
		path := filepath.Join(dir, disk.LogFile)
		s := open(t, config(t, dir))
		must(t, s.Logs.StoreLogs(entries(1, n, 1)))
		earlier, err := os.ReadFile(path)
		must(t, err)
		must(t, s.Logs.DeleteRange(1, n))
		must(t, s.Logs.StoreLogs(entries(1, n, 2)))
		closeStores(t, s)
		whole, err := os.ReadFile(path)
		must(t, err)
		o := original{log: entries(1, n, 2)}
		refusals := 0
		for at := 2 * pageSize; at < len(whole); at += pageSize {
			for from := 2 * pageSize; from < len(earlier); from += pageSize {
				if !isLogPage(whole[at:]) || !isLogPage(earlier[from:]) || !bytes.Equal(firstKey(whole[at:]), firstKey(earlier[from:])) {
					continue
				}
				changed := append([]byte{}, whole...)
				copy(changed[at+8:at+pageSize], earlier[from+8:]) // all but the page's id
				must(t, os.WriteFile(path, changed, 0o600))
				refused, err := o.check(t, dir)
				if err != nil {
					t.Errorf("%s, page %d from %d: %v", name, at/pageSize, from/pageSize, err)
				}
				if refused {
					refusals++
				}
			}
		}
		if refusals == 0 {
			t.Errorf("%s: nothing was refused", name)
		}
	}
}

// isLogPage tells a leaf page with entries.
func isLogPage(page []byte) bool {
	return page[8] == 2 && page[10] > 1 && len(firstKey(page)) == 8
}

// firstKey returns the first key of a leaf page.
func firstKey(page []byte) []byte {
	const header = 16
	position := header + int(binary.NativeEndian.Uint32(page[header+4:]))
	size := int(binary.NativeEndian.Uint32(page[header+8:]))
	if position+size > pageSize {
		return nil
	}
	return page[position : position+size]
}

// What leads to the entries has no checksum.
func TestABranchIsRightOrRefused(t *testing.T) {
	o := newOriginal(t)
	path := filepath.Join(o.dir, disk.LogFile)
	whole, err := os.ReadFile(path)
	must(t, err)
	refusals := 0
	for page := 2 * pageSize; page < len(whole); page += pageSize {
		if whole[page+8] != 1 {
			continue
		}
		for at := page; at < page+120; at++ {
			whole[at] ^= 1 << (at % 3)
			must(t, os.WriteFile(path, whole, 0o600))
			refused, err := o.check(t, o.dir)
			if err != nil {
				t.Errorf("bit %d of %d, %d in its page: %v", at%3, at, at%pageSize, err)
			}
			if refused {
				refusals++
			}
			whole[at] ^= 1 << (at % 3)
		}
	}
	if refusals < 40 {
		t.Errorf("only %d were refused", refusals)
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
