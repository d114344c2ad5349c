package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/bench/growth/series"
)

func TestNumbers(t *testing.T) {
	var n numbers
	if err := n.Set("1,100,10000"); err != nil || n.String() != "1,100,10000" || !slices.Equal(n.or(7), []int{1, 100, 10000}) {
		t.Errorf("got %v, %v", n, err)
	}
	for _, text := range []string{"", "x", "0", "2,1", "1,1", "-1"} {
		if err := n.Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if got := numbers(nil).or(7); !slices.Equal(got, []int{7}) {
		t.Errorf("got %v", got)
	}
}

func TestTheRecorderCountsEachKind(t *testing.T) {
	var r recorder
	_ = r.do(renewals, func() error { return nil })
	_ = r.do(renewals, func() error { return errors.New("no") })
	row := r.row(2 * time.Second)
	if len(row) != len(recorderColumns()) || row[3] != 0.5 || row[0] != 0 || row[len(row)-1] != 1 {
		t.Errorf("got %v", row)
	}
	if row = r.row(time.Second); row[3] != 0 || row[len(row)-1] != 0 {
		t.Errorf("what was taken is taken again: %v", row)
	}
}

// TestEveryPart runs all on a small scale: what it measures means nothing.
func TestEveryPart(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "leasenode")
	build := exec.Command("go", "build", "-o", binary, "./cmd/leasenode")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build leasenode: %v\n%s", err, out)
	}
	var stdout bytes.Buffer
	c := config{leasenode: binary, logStore: "bolt", out: t.TempDir(), length: 4 * time.Second, every: 300 * time.Millisecond, stdout: &stdout, stderr: io.Discard}
	// It is too short to be flat, which is not what is tested.
	if err := churn(t.Context(), c); err != nil && !strings.Contains(err.Error(), "not flat") {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "| n3, snapshots, MiB |") {
		t.Errorf("no verdict: %s", &stdout)
	}
	small := c
	small.sizes = numbers{1, 20}
	if err := connections(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	small.sizes = numbers{50, 300}
	if err := leases(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	if err := draw(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for name, least := range map[string]int{"churn-bolt": 3, "connections-bolt": 2, "leases-bolt": 2} {
		s, err := series.ReadFile(filepath.Join(c.out, name+".csv"))
		if err != nil || len(s.Rows) < least {
			t.Errorf("%s: %d rows, %v", name, len(s.Rows), err)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(c.out, "*.svg"))
	if err != nil || len(pictures) != 8 {
		t.Errorf("drawn: %v, %v", pictures, err)
	}
	if left, err := filepath.Glob(filepath.Join(c.out, "run-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestARunThatIsStoppedLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := config{leasenode: os.Args[0], logStore: "bolt", out: t.TempDir(), length: time.Second, every: time.Second, stdout: io.Discard, stderr: io.Discard}
	if err := churn(ctx, c); err == nil {
		t.Error("it was not stopped")
	}
	if left, err := os.ReadDir(c.out); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
