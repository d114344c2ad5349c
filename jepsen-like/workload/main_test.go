package workload_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sinceNow returns a clock that is 0 now and follows the bubble's.
func sinceNow() func() time.Duration {
	origin := time.Now()
	return func() time.Duration { return time.Since(origin) }
}
