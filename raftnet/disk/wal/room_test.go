package wal_test

import (
	"errors"
	"syscall"
	"testing"
	"testing/synctest"
)

// Where no segment can be made, what grows is refused before anything is touched, votes
// are written all the same, and all goes on when there is space.
func TestWithoutSpaceOnlyWhatGrowsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		l, w := create(t, disk)
		synctest.Wait() // a segment is ready
		disk.set(func(m *memory) { m.room = 0 })
		for {
			err := l.Room(1000)
			if errors.Is(err, syscall.ENOSPC) {
				break
			}
			must(t, err)
			w, _ = w.add(t, l, 1000)
		}
		if len(w) < 100 || !errors.Is(l.Room(1000), syscall.ENOSPC) {
			t.Errorf("%d records had room", len(w))
		}
		vote := func() error {
			p := payload(uint64(len(w)+1), 30)
			_, err := l.Append(p)
			if err == nil {
				w = append(w[:len(w):len(w)], p)
			}
			return err
		}
		for range 20 {
			must(t, vote())
		}
		disk.set(func(m *memory) { m.room = 100 << 10 }) // not enough for a segment as it would be now
		must(t, l.Room(1000))
		for range 200 {
			w, _ = w.add(t, l, 30)
			must(t, vote())
			disk.set(func(m *memory) { m.room = 10 << 20 })
		}
		must(t, l.Close())
		l, err := w.open(disk)
		must(t, err)
		must(t, l.Close())
	})
}

func TestRoomIsMadeForShortRecordsToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := newMemory()
		l, w := create(t, disk)
		synctest.Wait()
		must(t, l.Room(150_000))
		disk.set(func(m *memory) { m.room = 0 })
		w, _ = w.add(t, l, 150_000)
		for range 20 {
			w, _ = w.add(t, l, 30)
		}
		must(t, l.Close())
		l, err := w.open(disk)
		must(t, err)
		must(t, l.Close())
	})
}
