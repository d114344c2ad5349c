package workload

import "time"

// Monotonic returns the clock that all processes of one machine share, from a moment
// that they share, too: what the lines of a holder process are counted on.
//
//   - Linux, macOS and other Unixes: CLOCK_MONOTONIC.
//   - Windows: the time since boot, in steps of at most 16 ms.
//   - elsewhere: the wall clock, which must not be set while a run goes on.
func Monotonic() time.Duration { return monotonic() }
