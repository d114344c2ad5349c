//go:build race

package check_test

import (
	"testing"

	"github.com/leasenode/leasenode/internal/fullspeed"
)

// lieEvery is of how many lies one is told: under the race detector each takes ten times
// as long.
const lieEvery = 20

func TestEveryLieIsSeenAtFullSpeed(t *testing.T) {
	t.Parallel()
	fullspeed.Run(t, "-test.run=^TestEveryLieIsSeen$", "-test.timeout=10m")
}
