package leasetest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestManualClockMovesOnlyWhenTold(t *testing.T) {
	wall := time.Unix(1_764_000_000, 0)
	clock := leasetest.NewManualClock(wall)
	if clock.Monotonic() != 0 || !clock.Wall().Equal(wall) {
		t.Fatalf("began at %v, %v", clock.Monotonic(), clock.Wall())
	}
	clock.Advance(time.Minute)
	clock.Advance(0)
	if clock.Monotonic() != time.Minute || !clock.Wall().Equal(wall.Add(time.Minute)) {
		t.Errorf("a minute later: %v, %v", clock.Monotonic(), clock.Wall())
	}
	clock.SetWall(wall.Add(-time.Hour))
	if clock.Monotonic() != time.Minute || !clock.Wall().Equal(wall.Add(-time.Hour)) {
		t.Errorf("the time of day set back: %v, %v", clock.Monotonic(), clock.Wall())
	}
}

func TestClocksDoNotGoBack(t *testing.T) {
	for name, back := range map[string]func(){
		"advance": func() { newClock().Advance(-1) },
		"jump":    func() { leasetest.NewTrippingClock(time.Time{}).Arm(0, -1) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("went back without a word")
				}
			}()
			back()
		})
	}
}

func TestManualClockConcurrently(t *testing.T) {
	const goroutines, times = 8, 100
	clock := newClock()
	var group sync.WaitGroup
	for range goroutines {
		group.Go(func() {
			last := clock.Monotonic()
			for range times {
				clock.Advance(time.Millisecond)
				clock.SetWall(clock.Wall())
				if next := clock.Monotonic(); next < last+time.Millisecond {
					t.Errorf("%v came after %v and an advance", next, last)
				} else {
					last = next
				}
			}
		})
	}
	group.Wait()
	if got, want := clock.Monotonic(), goroutines*times*time.Millisecond; got != want {
		t.Errorf("advanced to %v, want %v", got, want)
	}
}

func TestTrippingClockJumpsOnceAfterItsReads(t *testing.T) {
	clock := leasetest.NewTrippingClock(time.Unix(1_764_000_000, 0))
	clock.Arm(2, time.Second)
	for i, want := range []time.Duration{0, 0, time.Second, time.Second} {
		clock.Wall() // does not count
		if got := clock.Monotonic(); got != want {
			t.Errorf("reading %d is %v, want %v", i, got, want)
		}
	}
	if got := clock.Wall().Unix(); got != 1_764_000_001 {
		t.Errorf("the time of day did not jump along: %d", got)
	}
	clock.Arm(5, time.Hour)
	clock.Arm(0, time.Minute)
	clock.Advance(time.Second)
	for range 7 {
		if got, want := clock.Monotonic(), time.Minute+2*time.Second; got != want {
			t.Errorf("after arming again the reading is %v, want %v", got, want)
		}
	}
}
