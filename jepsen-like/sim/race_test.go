//go:build race

package sim_test

import (
	"testing"

	"github.com/leasenode/leasenode/internal/fullspeed"
)

// defaultSeeds is how many seeds run if nothing is said: under the race detector each
// takes six times as long.
const defaultSeeds = 12

func TestSeedsAtFullSpeed(t *testing.T) {
	t.Parallel()
	fullspeed.Run(t, "-test.run=^TestSeeds$", "-first=1001", "-seeds=200", "-test.timeout=15m")
}
