//go:build !linux && !darwin && !windows

package holder

import "time"

// sinceBoot is not known here: Go's monotonic clock has to do, which may stand still
// while the machine is suspended.
func sinceBoot() (time.Duration, bool) { return 0, false }
