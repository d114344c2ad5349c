//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic("no CLOCK_MONOTONIC: " + err.Error()) // POSIX has it; nothing could be compared without
	}
	return time.Duration(ts.Nano())
}
