//go:build race

package sim_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// defaultSeeds is how many seeds run if nothing is said: under the race detector each
// takes six times as long.
const defaultSeeds = 12

// The race detector is for races; for all else, more seeds are better, so that here they
// run without it.
func TestSeedsAtFullSpeed(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "sim.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary, "-test.run=^TestSeeds$", "-first=1001", "-seeds=200", "-test.timeout=15m")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
