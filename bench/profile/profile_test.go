package main

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheTablesHaveBoth takes short profiles of real processes, of one binary as both.
func TestTheTablesHaveBoth(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "leasenode")
	build := exec.Command("go", "build", "-o", binary, "./cmd/leasenode")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build leasenode: %v\n%s", err, out)
	}
	c, err := parse([]string{"--before", binary, "--leasenode", binary, "--seconds", "1", "--dir", t.TempDir()}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), c, []int{16}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"### 16 clients", "before (", "after (", "CPU of the leader", "CPU of the follower", "| the state machine |", "| **all** |", "a mutex"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("there is no %q in\n%s", part, &out)
		}
	}
	if strings.Contains(out.String(), "Inf") || strings.Contains(out.String(), "NaN") {
		t.Errorf("figures without a time:\n%s", &out)
	}
}
