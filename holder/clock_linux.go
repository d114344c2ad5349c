package holder

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot counts the time that the machine was suspended, too: a replica that slept
// through its lease wakes up fenced. Every Linux has CLOCK_BOOTTIME since 2.6.39.
func sinceBoot() (time.Duration, bool) { return readClock(unix.CLOCK_BOOTTIME) }
