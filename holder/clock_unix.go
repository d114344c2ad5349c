//go:build linux || darwin

package holder

import (
	"time"

	"golang.org/x/sys/unix"
)

// readClock returns a reading of a clock of the system, or false if it has none such.
func readClock(id int32) (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
