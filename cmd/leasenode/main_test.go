package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// binary is the program under test, built once: its processes are real ones.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "leasenode-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "leasenode")
	if text, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program under test: %v\n%s", err, text)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// fakeCluster is a cluster whose leases are a store of the test's choosing.
type fakeCluster struct {
	lease.Store
	lease.Watcher
	status    holder.Status
	statusErr error
}

func (f fakeCluster) Status(context.Context) (holder.Status, error) { return f.status, f.statusErr }
func (f fakeCluster) Close() error                                  { return nil }

// outcome is what a run of the command left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// invocation runs the command against a fake cluster.
type invocation struct {
	cluster cluster
	env     []string
	ctx     context.Context // nil for one that never ends
}

func (i invocation) run(args ...string) outcome {
	var stdout, stderr bytes.Buffer
	ctx := i.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	code := run(ctx, process{
		name: "leasenode", args: args, env: i.env, stdout: &stdout, stderr: &stderr,
		dial: func([]string) (cluster, error) { return i.cluster, nil },
	})
	return outcome{code, stdout.String(), stderr.String()}
}

// stillStore is the reference store on a clock that the test moves.
func stillStore() (*leasetest.Memory, *leasetest.ManualClock) {
	clock := leasetest.NewManualClock(time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC))
	return leasetest.NewMemory(clock), clock
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}
