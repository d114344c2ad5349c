//go:build race

package check_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// lieEvery is of how many lies one is told: the race detector makes each ten times as
// slow, and is there for races.
const lieEvery = 20

// All lies are told without it.
func TestEveryLieIsSeenAtFullSpeed(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "check.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary, "-test.run=^TestEveryLieIsSeen$", "-test.timeout=10m")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
