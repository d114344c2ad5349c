package wal_test

import (
	"errors"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

var errInjected = errors.New("input/output error")

// failAt fails each operation op.
func failAt(op string) func(string) error {
	return func(doing string) error {
		if doing == op {
			return errInjected
		}
		return nil
	}
}

func TestARecordIsOneWriteAndOneSync(t *testing.T) {
	disk := newMemory()
	synctest.Test(t, func(t *testing.T) {
		l, w := create(t, disk)
		time.Sleep(time.Second)
		synctest.Wait()
		disk.set(func(m *memory) { clear(m.count) })
		w.add(t, l, 5000)
		if count := disk.counted(); count["write"] != 1 || count["sync"] != 1 || len(count) != 3 { // and one read
			t.Errorf("%v", count)
		}
		time.Sleep(time.Second) // the mark
		synctest.Wait()
		if count := disk.counted(); count["write"] != 2 || count["sync"] != 2 {
			t.Errorf("%v", count)
		}
		must(t, l.Close())
	})
}

// The mark is at most so much behind, however long records go on to come.
func TestTheMarkFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		l, w := create(t, disk)
		for range 85 { // in one segment
			w, _ = w.add(t, l, 10)
			time.Sleep(10 * time.Millisecond)
		}
		left := disk.copied()
		must(t, l.Close())
		lost := func(records int) *memory {
			m := newMemory()
			for name, f := range left.names {
				m.put(name, f.written)
			}
			content := m.names[segment(1)].written
			end := (1 + len(w)) * sector
			clear(content[end-records*sector : end])
			return m
		}
		if f, err := w[:len(w)-3].look(lost(3)); err != nil || f.view.Damage != nil {
			t.Errorf("what was written within 50 ms is said to be missing: %v, %v", f.view.Damage, err)
		}
		for _, n := range []int{25, 60, 80} {
			if f, err := w.look(lost(n)); err != nil || f.view.Damage == nil {
				t.Errorf("%d lost records are not noticed, %v", n, err)
			}
		}
	})
}

func TestAfterAFailureNothingIsWritten(t *testing.T) {
	for _, failing := range []string{"write", "sync"} {
		synctest.Test(t, func(t *testing.T) {
			disk := newMemory()
			l, w := create(t, disk)
			synctest.Wait()
			w.add(t, l, 100)
			disk.set(func(m *memory) { m.fail = failAt(failing) })
			if _, err := l.Append([]byte("x")); !errors.Is(err, errInjected) {
				t.Errorf("%v", err)
			}
			disk.set(func(m *memory) { m.fail = nil })
			disk.set(func(m *memory) { clear(m.count) })
			if _, err := l.Append([]byte("x")); !errors.Is(err, errInjected) {
				t.Errorf("%v", err)
			}
			must(t, l.Close())
			if disk.counted()["write"] > 0 {
				t.Errorf("%s: it was written to", failing)
			}
		})
	}
}

// A mark that cannot be written is a failure of the disk.
func TestAfterAMarkThatFailsNothingIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		l, w := create(t, disk)
		synctest.Wait()
		w.add(t, l, 100)
		disk.set(func(m *memory) { m.fail = failAt("sync") })
		time.Sleep(time.Second)
		synctest.Wait()
		disk.set(func(m *memory) { m.fail = nil })
		if _, err := l.Append([]byte("x")); !errors.Is(err, errInjected) {
			t.Errorf("%v", err)
		}
		must(t, l.Close())
	})
}

func TestWhatIsDroppedIsRemovedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		l, w := create(t, disk)
		var at wal.Position
		var first wal.Position
		for at.Segment < 5 {
			w, at = w.add(t, l, 40_000)
			if first.Segment == 0 {
				first = at
			}
		}
		synctest.Wait()
		before := l.Bytes()
		var done []string
		disk.set(func(m *memory) { m.before = func(op string) { done = append(done, op) } })
		l.Drop(4)
		l.Drop(2) // what was said once holds
		synctest.Wait()
		disk.set(func(m *memory) { m.before = nil })
		if want := []string{"remove", "sync names", "remove", "sync names", "remove", "sync names"}; !slices.Equal(done, want) {
			t.Errorf("it does %q, want %q", done, want)
		}
		names, err := disk.List()
		must(t, err)
		slices.Sort(names)
		if want := []string{segment(4), segment(5), segment(6), "mark"}; !slices.Equal(names, want) {
			t.Errorf("there are %v, want %v", names, want)
		}
		if freed := before - l.Bytes(); freed != (64+128+256)<<10 {
			t.Errorf("%d bytes are free", freed)
		}
		if _, err := l.Read(first, 10); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was dropped is read: %v", err)
		}
		emptied := &original{written: w, files: contents(disk)}
		clear(emptied.files[segment(4)][sector:])
		emptied.mustRefuse(t, emptied.with(func(map[string][]byte) {}), "without the first records")
		l.Drop(99)
		synctest.Wait()
		w, _ = w.add(t, l, 10)
		must(t, l.Close())
		f, err := w.look(disk)
		must(t, err)
		if f.view.Damage != nil || f.last != uint64(len(w)) {
			t.Errorf("it ends at %d of %d: %v", f.last, len(w), f.view.Damage)
		}
	})
}

func TestSegmentsGrowAndTakeWhatIsLonger(t *testing.T) {
	disk := newMemory()
	l, w := create(t, disk)
	w, _ = w.add(t, l, 20<<20)
	w, _ = w.add(t, l, 9<<20)
	w, _ = w.add(t, l, 10)
	w, _ = w.add(t, l, 64<<10)
	must(t, l.Close())
	l, err := w.open(disk)
	must(t, err)
	if size := l.Bytes(); size > 60<<20 {
		t.Errorf("it has %d bytes", size)
	}
	must(t, l.Close())
}

// Reads run beside writes and removals.
func TestReadsRunBesideWrites(t *testing.T) {
	dir := t.TempDir() + "/log"
	files, err := wal.MakeDir(dir)
	must(t, err)
	l, w := create(t, files)
	type record struct {
		at   wal.Position
		text string
	}
	var newest atomic.Pointer[record]
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				r := newest.Load()
				if r == nil {
					continue
				}
				if b, err := l.Read(r.at, len(r.text)); err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && string(b) != r.text {
					t.Errorf("%q is read as %q, %v", r.text, b, err)
					return
				}
			}
		})
	}
	for range 60 {
		var at wal.Position
		w, at = w.add(t, l, 7000)
		newest.Store(&record{at, string(w[len(w)-1])})
		l.Drop(at.Segment)
	}
	close(stop)
	readers.Wait()
	must(t, l.Close())
}

func TestOneProcessHasTheLog(t *testing.T) {
	dir := t.TempDir() + "/log"
	made, err := wal.MakeDir(dir)
	must(t, err)
	must(t, wal.Create(made, []byte("first")))
	writer, err := wal.OpenDir(dir)
	must(t, err)
	if _, err := wal.OpenDir(dir); !errors.Is(err, wal.ErrInUse) {
		t.Errorf("it is opened twice: %v", err)
	}
	if _, err := wal.ViewDir(dir); !errors.Is(err, wal.ErrInUse) {
		t.Errorf("it is read while it is written: %v", err)
	}
	must(t, writer.Close())
	first, err := wal.ViewDir(dir)
	must(t, err)
	second, err := wal.ViewDir(dir)
	must(t, err)
	if _, err := wal.OpenDir(dir); !errors.Is(err, wal.ErrInUse) {
		t.Errorf("it is written while it is read: %v", err)
	}
	must(t, errors.Join(first.Close(), second.Close()))
	if _, err := wal.OpenDir(dir + "/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
