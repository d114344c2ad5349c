package wal_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

// original is a log in several segments, with short records and long ones, that was
// closed; last is where the last record is, in its file.
type original struct {
	written
	files map[string][]byte
	last  struct {
		name     string
		from, to int
	}
	// earlier is what the files were after each record.
	earlier []map[string][]byte
}

func contents(m *memory) map[string][]byte {
	files := map[string][]byte{}
	for name, f := range m.copied().names {
		files[name] = f.written
	}
	return files
}

func newOriginal(t *testing.T) *original {
	t.Helper()
	disk := newMemory()
	l, w := create(t, disk)
	o := &original{}
	for _, size := range []int{10, 3000, 20_000, 500, 20_000, 9000, 40_000, 30, 40, 2500} {
		var at wal.Position
		w, at = w.add(t, l, size)
		const content, header = 492, 12
		o.last.name = fmt.Sprintf("%08d.seg", at.Segment)
		o.last.from = int(at.Offset-header) / content * sector
		o.last.to = o.last.from + (size+header+content-1)/content*sector
		o.earlier = append(o.earlier, contents(disk))
	}
	must(t, l.Close())
	o.written, o.files = w, contents(disk)
	delete(o.files, segment(3)) // it has nothing, and is not missed
	return o
}

// with returns the files with a change.
func (o *original) with(change func(files map[string][]byte)) *memory {
	files := maps.Clone(o.files)
	change(files)
	m := newMemory()
	for name, content := range files {
		m.put(name, content)
	}
	return m
}

// changed is with for one file, of which change gets a copy.
func (o *original) changed(name string, change func([]byte) []byte) *memory {
	return o.with(func(files map[string][]byte) { files[name] = change(slices.Clone(files[name])) })
}

// mustRefuse fails the test unless damage is found, and everything that is read all the
// same is right.
func (o *original) mustRefuse(t *testing.T, m *memory, what string, args ...any) {
	t.Helper()
	f, err := o.look(m)
	if err != nil || f.view.Damage == nil || f.view.Damage.Name == "" {
		t.Errorf("%s: %v, %+v", fmt.Sprintf(what, args...), err, f.view)
	}
	if _, err := wal.Open(f.view); err == nil {
		t.Errorf("%s: it is opened", fmt.Sprintf(what, args...))
	}
}

func TestWholeFilesAreNotRefused(t *testing.T) {
	o := newOriginal(t)
	f, err := o.look(o.with(func(map[string][]byte) {}))
	must(t, err)
	if f.view.Damage != nil || !f.view.Newest || f.last != uint64(len(o.written)) || len(o.files) != 3 {
		t.Errorf("%+v, %d files", f, len(o.files))
	}
}

func TestAFlippedBitIsDamage(t *testing.T) {
	o := newOriginal(t)
	for name, content := range o.files {
		for at := 0; at < len(content); at += 211 { // every place in a block, in one or another
			bit := at % 8
			o.mustRefuse(t, o.changed(name, func(b []byte) []byte { b[at] ^= 1 << bit; return b }), "bit %d of %d in %s", bit, at, name)
		}
	}
}

func TestAFlippedBitInASegmentWithoutRecordsIsDamage(t *testing.T) {
	o := &original{}
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		l, w := create(t, disk)
		synctest.Wait() // the segment is made
		must(t, l.Close())
		o.written, o.files = w, contents(disk)
	})
	for _, at := range []int{0, 3, 25, 600, 128<<10 - 1} {
		o.mustRefuse(t, o.changed(segment(2), func(b []byte) []byte { b[at] ^= 1; return b }), "bit 0 of %d", at)
	}
}

func TestAMissingEndIsDamage(t *testing.T) {
	o := newOriginal(t)
	for name, content := range o.files {
		for size := 0; size < len(content); size += 1 + len(content)/61 {
			o.mustRefuse(t, o.changed(name, func(b []byte) []byte { return b[:size] }), "%s cut off at %d", name, size)
		}
		o.mustRefuse(t, o.changed(name, func(b []byte) []byte { return append(b, make([]byte, sector)...) }), "%s is longer", name)
	}
}

func TestALostFileIsDamage(t *testing.T) {
	o := newOriginal(t)
	for name := range o.files {
		m := o.with(func(files map[string][]byte) { delete(files, name) })
		switch f, err := o.look(m); {
		case name == segment(1):
			// It might have been dropped: whoever needs its records sees it.
			if err != nil || f.first == 1 {
				t.Errorf("without %s it begins with %d, %v", name, f.first, err)
			}
		default:
			o.mustRefuse(t, m, "without %s", name)
		}
	}
}

func segment(number int) string { return fmt.Sprintf("%08d.seg", number) }

func TestZeroesAreDamage(t *testing.T) {
	o := newOriginal(t)
	for name, content := range o.files {
		for from := 0; from < len(content); from += sector {
			for _, n := range []int{1, 2, 9, 1000} {
				to := min(from+n*sector, len(content))
				if bytes.Equal(content[from:to], make([]byte, to-from)) {
					continue
				}
				o.mustRefuse(t, o.changed(name, func(b []byte) []byte { clear(b[from:to]); return b }), "%s zero from %d to %d", name, from, to)
			}
		}
	}
}

func TestBlocksInOtherPlacesAreDamage(t *testing.T) {
	o := newOriginal(t)
	r := rand.New(rand.NewPCG(1, 1))
	names := slices.Sorted(maps.Keys(o.files))
	pick := func() (string, int) {
		name := names[r.IntN(len(names))]
		return name, r.IntN(len(o.files[name])/sector) * sector
	}
	for range 1000 {
		from, at := pick()
		to, place := pick()
		block := o.files[from][at : at+sector]
		if bytes.Equal(block, o.files[to][place:place+sector]) {
			continue
		}
		m := o.changed(to, func(b []byte) []byte { copy(b[place:], block); return b })
		o.mustRefuse(t, m, "block at %d of %s in the place of %d of %s", at, from, place, to)
	}
}

// What the last segment had may be the newest record, which then is not known.
func TestOfADamagedLastSegmentTheNewestRecordIsNotKnown(t *testing.T) {
	o := newOriginal(t)
	o.files["mark"] = o.earlier[0]["mark"]
	o.mustRefuse(t, o.changed(o.last.name, func(b []byte) []byte { return b[:o.last.from] }), "cut off before the last record")
	o.mustRefuse(t, o.changed(o.last.name, func(b []byte) []byte { b[30] ^= 1; return b }), "without its first block")
}

// What the disk had earlier, in any of its blocks, is damage too; all of it together is
// what is not noticed.
func TestLostWritesAreDamage(t *testing.T) {
	o := newOriginal(t)
	refused := 0
	for i, earlier := range o.earlier {
		for name, old := range earlier {
			if o.files[name] == nil {
				continue
			}
			for at := 0; at < len(old); at += sector {
				if name == "mark" || bytes.Equal(old[at:at+sector], o.files[name][at:at+sector]) {
					continue
				}
				refused++
				o.mustRefuse(t, o.changed(name, func(b []byte) []byte { copy(b[at:at+sector], old[at:]); return b }), "block at %d of %s as after record %d", at, name, i+2)
				o.mustRefuse(t, o.changed(name, func(b []byte) []byte { copy(b[at:], old[at:]); return b }), "%s from %d as after record %d", name, at, i+2)
			}
		}
	}
	if refused < 200 {
		t.Errorf("only %d were tried", refused)
	}
}

// A file of another log with the same records is refused.
func TestFilesOfAnotherLogAreDamage(t *testing.T) {
	o, other := newOriginal(t), newOriginal(t)
	for name := range o.files {
		o.mustRefuse(t, o.with(func(files map[string][]byte) { files[name] = other.files[name] }), "%s of another log", name)
	}
	for at := o.last.from; at < o.last.to; at += sector {
		m := o.changed(o.last.name, func(b []byte) []byte { copy(b[at:at+sector], other.files[o.last.name][at:]); return b })
		o.mustRefuse(t, m, "block at %d of another log", at)
	}
}

// Without a clean stop the mark is behind. Then the last record may lack blocks, which a
// crash can be the reason of; anything else is damage.
func TestAfterACrashOnlyTheLastRecordMayBeIncomplete(t *testing.T) {
	o := newOriginal(t)
	o.files["mark"] = o.earlier[0]["mark"]
	without := o.written[:len(o.written)-1]
	blocks := (o.last.to - o.last.from) / sector
	for lost := 1; lost < 1<<blocks; lost++ {
		m := o.changed(o.last.name, func(b []byte) []byte {
			for i := range blocks {
				if lost&(1<<i) != 0 {
					at := o.last.from + i*sector
					clear(b[at : at+sector])
				}
			}
			return b
		})
		f, err := without.look(m)
		must(t, err)
		if f.view.Damage != nil || f.last != uint64(len(without)) {
			t.Fatalf("without blocks %b it ends at %d: %v", lost, f.last, f.view.Damage)
		}
		l, err := wal.Open(f.view)
		must(t, err)
		again := without[:len(without):len(without)]
		for range 3 { // in the place of what was there
			again, _ = again.add(t, l, 600)
		}
		must(t, l.Close())
		l, err = again.open(m.copied())
		must(t, err)
		must(t, l.Close())
	}
	for at := sector; at < o.last.from; at += sector {
		m := o.changed(o.last.name, func(b []byte) []byte { clear(b[at : at+sector]); return b })
		o.mustRefuse(t, m, "zero at %d, before the last record at %d", at, o.last.from)
	}
	for at := o.last.from; at < o.last.to; at += 11 {
		o.mustRefuse(t, o.changed(o.last.name, func(b []byte) []byte { b[at] ^= 4; return b }), "bit 2 of %d in the last record", at)
	}
}
