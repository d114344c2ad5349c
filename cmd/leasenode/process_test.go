package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/internal/portblock/porttest"
)

// patience is how long anything may take that real processes do on a busy machine.
const patience = 90 * time.Second

// eventually polls until ok, and fails the test if that takes too long.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
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

// program is a running process of the program under test.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr syncBuffer
	ended          chan struct{}
}

// launch starts the program; the test kills it at the end if it still runs.
func launch(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.stdout, &p.stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell starts it
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("leasenode %s\nstdout: %s\nstderr: %s", strings.Join(args, " "), &p.stdout, &p.stderr)
		}
	})
	return p
}

// finish waits for the end of the process and returns what it left behind.
func (p *program) finish(t *testing.T) outcome {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatalf("it did not end within %v", patience)
	}
	return outcome{p.cmd.ProcessState.ExitCode(), p.stdout.String(), p.stderr.String()}
}

func (p *program) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// terminate does what a service manager does.
func (p *program) terminate(t *testing.T) { t.Helper(); p.signal(t, syscall.SIGTERM) }

// interrupt does what Ctrl-C in a terminal does: it signals the process and all that
// are in its group.
func (p *program) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
}

// devCluster is a running "leasenode dev".
type devCluster struct {
	*program
	args  []string
	dir   string
	nodes int
	api   int // the first port
	ready devJSON
}

// startDev starts a cluster and returns once dev says that it runs.
func startDev(t *testing.T, nodes int) *devCluster {
	t.Helper()
	ports := porttest.Row(t, 2*maxDevNodes)
	d := &devCluster{dir: t.TempDir(), nodes: nodes, api: ports}
	d.args = []string{
		"dev", "--nodes", strconv.Itoa(nodes), "--data-dir", d.dir,
		"--api-port", strconv.Itoa(ports), "--peer-port", strconv.Itoa(ports + maxDevNodes), "-o", "json",
	}
	d.start(t)
	return d
}

func (d *devCluster) start(t *testing.T) {
	t.Helper()
	d.program = launch(t, d.args...)
	eventually(t, "dev says that the cluster runs", func() bool {
		select {
		case <-d.ended:
			t.Fatal("dev has ended")
		default:
		}
		return json.Unmarshal([]byte(d.stdout.String()), &d.ready) == nil
	})
	if len(d.ready.Nodes) != d.nodes || d.ready.Leader == "" {
		t.Fatalf("%+v", d.ready)
	}
}

// endpoints are those of all nodes but the ones that are down.
func (d *devCluster) endpoints() string {
	var endpoints []string
	for k := range d.nodes {
		endpoints = append(endpoints, address(d.api+k))
	}
	return strings.Join(endpoints, ",")
}

// client runs a client command against the cluster.
func (d *devCluster) client(t *testing.T, args ...string) outcome {
	t.Helper()
	return launch(t, append(args, "--endpoints", d.endpoints(), "--timeout", "30s", "-o", "json")...).finish(t)
}

// must runs a client command that has to succeed, and decodes what it prints.
func (d *devCluster) must(t *testing.T, result any, args ...string) {
	t.Helper()
	got := d.client(t, args...)
	if got.code != exitDone {
		t.Fatalf("%v: %+v", args, got)
	}
	if err := json.Unmarshal([]byte(got.stdout), result); err != nil {
		t.Fatalf("%v: %v in %s", args, err, got.stdout)
	}
}

// pidOf is the process of a node, as its file says.
func (d *devCluster) pidOf(t *testing.T, id string) int {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, id, pidFile))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// kill ends a node the hard way and waits until dev has told about it.
func (d *devCluster) kill(t *testing.T, id string) {
	t.Helper()
	pid := d.pidOf(t, id)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	death := fmt.Sprintf("%s (process %d) died: signal: killed", id, pid)
	eventually(t, "dev says: "+death, func() bool { return strings.Contains(d.stderr.String(), death) })
}

// gone reports whether a process is no more.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
