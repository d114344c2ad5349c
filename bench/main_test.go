package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/bench/plan"
)

// asProgramEnv has the test program be bench-peers itself.
const asProgramEnv = "BENCH_PEERS_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgramEnv) != "" {
		os.Exit(start(os.Args[1:], os.Stderr))
	}
	os.Exit(m.Run())
}

func TestParse(t *testing.T) {
	for line, want := range map[string]config{
		"":                                 {total: plan.Full, only: []string{"load", "failover", "memory"}},
		"--quick":                          {total: plan.Quick, only: []string{"load", "failover", "memory"}},
		"--time 30m --leases 1000000":      {total: 30 * time.Minute, leases: 1_000_000, only: []string{"load", "failover", "memory"}},
		"--only failover,memory --kills 3": {total: plan.Full, kills: 3, only: []string{"failover", "memory"}},
	} {
		got, err := parse(strings.Fields(line), &bytes.Buffer{})
		if err != nil {
			t.Errorf("%q: %v", line, err)
			continue
		}
		if got.total != want.total || got.leases != want.leases || got.kills != want.kills || strings.Join(got.only, ",") != strings.Join(want.only, ",") {
			t.Errorf("%q is %+v", line, got)
		}
		if wantCommand := strings.TrimSpace("bench-peers " + line); got.command != wantCommand {
			t.Errorf("%q is remembered as %q", line, got.command)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, line := range []string{"--quick --time 1m", "--only lod", "--kills -1", "--leases -1", "all", "--no-such-flag"} {
		var stderr bytes.Buffer
		if code := start(strings.Fields(line), &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("%q exits with %d and says %q", line, code, stderr.String())
		}
	}
}

// syncBuffer collects what a process writes while the test looks at it.
type syncBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 90 s: %s", what)
		}
	}
}

// membersIn counts the processes with dir in their command line.
func membersIn(t *testing.T, dir string) (n int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		text, err := os.ReadFile(line) // a process that has just ended has none
		if err == nil && bytes.Contains(text, []byte("--data-dir\x00"+dir)) {
			n++
		}
	}
	return n
}

func TestNothingIsLeftBehindByARunThatIsStopped(t *testing.T) {
	for _, by := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		t.Run(by.String(), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "RESULTS.md")
			// Leasenode is never reached: etcd alone shows what becomes of processes.
			cmd := exec.Command(os.Args[0], "--only", "failover", "--time", "1h", "--dir", dir, "--out", out, "--leasenode", stuck(t))
			cmd.Env = append(os.Environ(), asProgramEnv+"=1")
			var stderr syncBuffer
			cmd.Stderr = &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = cmd.Process.Kill() })
			eventually(t, "leasenode is started", func() bool { return strings.Contains(stderr.String(), "start leasenode") })
			if n := membersIn(t, dir); n < 3 {
				t.Fatalf("%d members of etcd are running:\n%s", n, stderr.String())
			}
			if err := cmd.Process.Signal(by); err != nil {
				t.Fatal(err)
			}
			ended, isExit := errors.AsType[*exec.ExitError](cmd.Wait())
			eventually(t, "the members end", func() bool { return membersIn(t, dir) == 0 })
			if by == syscall.SIGKILL {
				return
			}
			if !isExit || ended.ExitCode() != 1 || !strings.Contains(stderr.String(), "nothing written") {
				t.Errorf("it ended with %v:\n%s", ended, stderr.String())
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// stuck makes a leasenode that says its version and never serves.
func stuck(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leasenode")
	const script = "#!/bin/sh\n[ \"$1\" = version ] && { echo stuck; exit; }\nexec sleep 600\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
