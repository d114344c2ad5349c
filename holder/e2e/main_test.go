// Package e2e_test holds the holder library against what it is for: real processes,
// real nodes, real signals.
package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

// leasenode is the path of the program, built once for all tests.
var leasenode string

func TestMain(m *testing.M) {
	if endpoints := os.Getenv(endpointsVariable); endpoints != "" {
		replica(endpoints)
		return
	}
	os.Exit(testAll(m))
}

func testAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "leasenode-e2e")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	leasenode = filepath.Join(dir, "leasenode")
	if out, err := exec.Command("go", "build", "-o", leasenode, "github.com/leasenode/leasenode/cmd/leasenode").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
