package workload

import (
	"time"

	"golang.org/x/sys/windows"
)

func monotonic() time.Duration { return windows.DurationSinceBoot() }
