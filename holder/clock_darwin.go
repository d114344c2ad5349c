package holder

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot counts the time that the machine was asleep, too: so does CLOCK_MONOTONIC
// on macOS, unlike the clock that Go reads there.
func sinceBoot() (time.Duration, bool) { return readClock(unix.CLOCK_MONOTONIC) }
