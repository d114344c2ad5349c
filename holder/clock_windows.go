package holder

import (
	"time"

	"golang.org/x/sys/windows"
)

// sinceBoot counts the time that the machine was asleep, too. It moves in steps of 10
// to 16 ms, which the margin has to cover.
func sinceBoot() (time.Duration, bool) { return windows.DurationSinceBoot(), true }
