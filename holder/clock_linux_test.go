package holder_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasenode/leasenode/holder"
)

// The clock is the one that goes on while the machine sleeps, and not Go's.
func TestTheClockIsBootTime(t *testing.T) {
	clock := holder.NewClock()
	for range 1000 {
		before := bootTime(t)
		reading := clock.Monotonic()
		if after := bootTime(t); reading < before || reading > after {
			t.Fatalf("%v is not between %v and %v", reading, before, after)
		}
	}
	if d := time.Since(clock.Wall()); d < 0 || d > time.Minute {
		t.Errorf("the wall clock is %v off", d)
	}
}

func bootTime(t *testing.T) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
