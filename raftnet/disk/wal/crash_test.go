package wal_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/raftnet/disk/wal"
)

// image is what a crash left, and what may be in it.
type image struct {
	*memory
	op string
	// acknowledged is how many records were, and needed the first of those that were not
	// dropped.
	acknowledged, needed uint64
}

// crashes makes images of a disk at every operation.
type crashes struct {
	r                    *rand.Rand
	acknowledged, needed atomic.Uint64
	images               []image
}

func (c *crashes) take(m *memory, op string) {
	c.images = append(c.images, image{m.crash(c.r), op, c.acknowledged.Load(), c.needed.Load()})
}

// Wherever a crash comes, all that was acknowledged is there, and of the record that was
// being written all or nothing.
func TestACrashAtAnyPointLosesNothing(t *testing.T) {
	images := 0
	for seed := range uint64(5) {
		synctest.Test(t, func(t *testing.T) {
			w, c := runWithCrashes(t, seed)
			for i, left := range c.images {
				var again *crashes
				if i%4 == 0 { // crashes while it is opened after a crash
					again = &crashes{r: c.r}
				}
				if err := w.checkCrash(left, again); err != nil {
					t.Errorf("seed %d, image %d, before %s, %d acknowledged: %v", seed, i, left.op, left.acknowledged, err)
				}
			}
			images += len(c.images)
		})
	}
	t.Logf("%d images", images)
}

// runWithCrashes writes a log and returns it, with images of what crashes would leave.
func runWithCrashes(t *testing.T, seed uint64) (written, *crashes) {
	t.Helper()
	disk := newMemory()
	r := rand.New(rand.NewPCG(seed, 1))
	c := &crashes{r: rand.New(rand.NewPCG(seed, 2))}
	l, w := create(t, disk)
	c.acknowledged.Store(1)
	c.needed.Store(1)
	disk.set(func(m *memory) {
		m.before = func(op string) {
			if op != "read" && op != "size" && op != "list" && op != "open" {
				c.take(disk, op)
			}
		}
	})
	segments := []uint32{0, 1}
	for range 20 {
		size := r.IntN([]int{100, 700, 3000, 3000, 9000, 70_000}[r.IntN(6)])
		var at wal.Position
		w, at = w.add(t, l, size)
		c.acknowledged.Store(uint64(len(w)))
		segments = append(segments, at.Segment)
		switch r.IntN(4) {
		case 0:
			time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		case 1:
			needed := c.needed.Load()
			needed += uint64(r.IntN(len(w) - int(needed) + 1))
			c.needed.Store(needed)
			l.Drop(segments[needed])
		case 2:
			synctest.Wait()
		}
	}
	must(t, l.Close())
	disk.set(func(m *memory) { m.before = nil })
	c.take(disk, "the end")
	return w, c
}

// checkCrash opens what a crash left, and writes to it; there may be further crashes
// meanwhile.
func (w written) checkCrash(left image, further *crashes) error {
	upTo := min(left.acknowledged+1, uint64(len(w)))
	f, err := w[:upTo].look(left)
	if f.last == left.acknowledged { // whoever was being written is not there
		w, err = w[:left.acknowledged], nil
		f, err = w.look(left)
	}
	if err != nil {
		return err
	}
	if f.view.Damage != nil || f.last < left.acknowledged || f.first > left.needed {
		return fmt.Errorf("it has records %d to %d, damage: %v; %d are needed", f.first, f.last, f.view.Damage, left.needed)
	}
	if further != nil {
		further.acknowledged.Store(f.last)
		further.needed.Store(f.first)
		left.set(func(m *memory) { m.before = func(op string) { further.take(left.memory, op) } })
	}
	l, err := wal.Open(f.view)
	if err != nil {
		return err
	}
	w = append(w[:f.last:f.last], payload(f.last+1, 700))
	if _, err := l.Append(w[f.last]); err != nil {
		return err
	}
	if err := l.Close(); err != nil {
		return err
	}
	left.set(func(m *memory) { m.before = nil })
	if further != nil {
		for i, left := range further.images {
			if err := w.checkCrash(left, nil); err != nil {
				return fmt.Errorf("further image %d, before %s: %w", i, left.op, err)
			}
		}
	}
	again, err := w.look(left.copied())
	if err == nil && (again.view.Damage != nil || again.last != uint64(len(w))) {
		err = fmt.Errorf("then it has %d of %d, damage: %v", again.last, len(w), again.view.Damage)
	}
	return err
}
