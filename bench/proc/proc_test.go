package proc_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/bench/proc"
)

func start(t *testing.T, script string) *proc.Process {
	t.Helper()
	return startIn(t, filepath.Join(t.TempDir(), "new"), script)
}

func startIn(t *testing.T, dir, script string) *proc.Process {
	t.Helper()
	p, err := proc.Start(proc.Command{Name: "the script", Path: "/bin/sh", Args: []string{"-c", script}, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p
}

// eventually polls until ok.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func TestKillEndsTheProcessAndIsRepeatable(t *testing.T) {
	dir := t.TempDir()
	p := startIn(t, dir, "trap '' TERM; touch deaf; while true; do sleep 0.1; done")
	eventually(t, "the script ignores SIGTERM", func() bool { _, err := os.Stat(filepath.Join(dir, "deaf")); return err == nil })
	if err := p.Err(); err != nil {
		t.Fatalf("it runs: %v", err)
	}
	for range 2 {
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Kill(p.Pid(), 0); err == nil {
		t.Error("the process is still there")
	}
	if err := p.Err(); err == nil || !strings.Contains(err.Error(), "the script ended") {
		t.Errorf("it says: %v", err)
	}
}

func TestErrShowsWhatTheProcessWroteLast(t *testing.T) {
	p := start(t, "echo address in use >&2; exit 3")
	eventually(t, "the script ends", func() bool { return p.Err() != nil })
	if text := p.Err().Error(); !strings.Contains(text, "exit status 3") || !strings.Contains(text, "address in use") {
		t.Error(text)
	}
}

func TestUsageIsOfTheProcess(t *testing.T) {
	p := start(t, "dd if=/dev/zero of=data bs=65536 count=64 conv=fsync 2>/dev/null; i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; touch ready; exec sleep 60")
	eventually(t, "the shell used CPU time", func() bool {
		usage, err := proc.UsageOf(p.Pid())
		if err != nil {
			t.Fatal(err)
		}
		return usage.CPU > 0
	})
	resident, err := proc.ResidentBytes(p.Pid())
	if err != nil || resident < 100<<10 || resident > 100<<20 {
		t.Errorf("a shell has %d bytes resident, %v", resident, err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if usage, err := proc.UsageOf(p.Pid()); err == nil {
		t.Errorf("a process that is gone uses %+v", usage)
	}
}

func TestOwnWritesAreCounted(t *testing.T) {
	before, err := proc.UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(".", "written") // the temporary folder may be in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	times, err := proc.SyncTimes(dir, 16)
	if err != nil {
		t.Fatal(err)
	}
	if len(times) != 16 || !slices.IsSorted(times) || times[0] <= 0 {
		t.Errorf("fdatasync took %v", times)
	}
	after, err := proc.UsageOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if written := after.Minus(before).Written; written < 16*4096 {
		t.Errorf("16 blocks of 4 KiB are %d bytes", written)
	}
}

func TestThisMachine(t *testing.T) {
	m := proc.ThisMachine()
	if m.Cores < 1 || m.MemoryMB < 1 || m.CPU == "" || !strings.HasPrefix(m.Kernel, "Linux ") {
		t.Errorf("%+v", m)
	}
}

func TestPortsAreFreeAndDistinct(t *testing.T) {
	var ports proc.Ports
	seen := map[string]bool{}
	for range 3 { // so many that some would come twice by chance
		taken, err := ports.Take(300)
		if err != nil {
			t.Fatal(err)
		}
		for _, addr := range taken {
			if seen[addr] {
				t.Errorf("%s twice", addr)
			}
			seen[addr] = true
			listener, err := net.Listen("tcp", addr)
			if err != nil {
				t.Errorf("%s is not free: %v", addr, err)
				continue
			}
			_ = listener.Close()
		}
	}
}
