// Package fullspeed is for tests that are slow under the race detector and have no use for
// it: they look for what is wrong, not for races, and find more in the same time without.
package fullspeed

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Run builds the tests of the package that t is of, without the race detector, and runs
// them with args, such as -test.run=^TestName$.
func Run(t *testing.T, args ...string) {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "fullspeed.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), binary, args...)
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
