//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd && !dragonfly && !windows

package workload

import "time"

func monotonic() time.Duration { return time.Duration(time.Now().UnixNano()) }
