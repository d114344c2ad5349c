package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/leasenode/leasenode/jepsen-like/cluster"
)

// TestMain has the test binary be the holder process, too, as the command is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		main()
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built are the programs that the tests run, built once.
var built struct {
	once sync.Once
	dir  string
	cluster.Binaries
	example string
	err     error
}

func programsOf(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("real processes take their time")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "chaos-test-"); built.err != nil {
			return
		}
		if built.Binaries, built.err = cluster.Build(context.Background(), built.dir); built.err != nil {
			return
		}
		built.example = filepath.Join(built.dir, "example")
		var out []byte
		if out, built.err = exec.Command("go", "build", "-o", built.example, "./example").CombinedOutput(); built.err != nil {
			built.err = fmt.Errorf("build the example: %w\n%s", built.err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
}

// turn lets two runs go on at a time: each has a cluster to keep busy.
var turn = make(chan struct{}, 2)

// ran is a command line that was run.
type ran struct {
	code           int
	stdout, stderr string
	dir            string
}

// chaosWith runs the command in a new folder, with the programs that were built.
func chaosWith(t *testing.T, ctx context.Context, args ...string) ran {
	t.Helper()
	programsOf(t)
	turn <- struct{}{}
	defer func() { <-turn }()
	dir := filepath.Join(t.TempDir(), "run")
	args = append(args, "--out", dir)
	if !strings.Contains(strings.Join(args, " "), "--endpoints") {
		args = append(args, "--leasenode", built.Leasenode, "--chaosnode", built.Chaosnode)
	}
	r := command(ctx, args...)
	r.dir = dir
	return r
}

func command(ctx context.Context, args ...string) ran {
	var stdout, stderr bytes.Buffer
	code := run(ctx, process{args: args, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr})
	return ran{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

// expect fails the test unless the command ended with code and printed each of words.
func (r ran) expect(t *testing.T, code int, words ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, word := range words {
		if !strings.Contains(r.stdout+r.stderr, word) {
			t.Errorf("it does not say %q", word)
		}
	}
	if t.Failed() {
		t.Logf("standard output:\n%s\nstandard error:\n%s", r.stdout, r.stderr)
		r.logEnds(t)
	}
}

// logEnds logs the last words of each process.
func (r ran) logEnds(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(r.dir, "*", "*.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s ends with:\n%s", filepath.Base(path), text[max(0, len(text)-1500):])
	}
}
