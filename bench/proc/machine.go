package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Machine is what figures were measured on.
type Machine struct {
	CPU      string
	Cores    int
	MemoryMB int64
	Kernel   string
}

// ThisMachine describes the machine as far as it can be told.
func ThisMachine() Machine {
	m := Machine{CPU: "unknown", Cores: runtime.NumCPU(), Kernel: "unknown"}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				m.CPU = strings.TrimSpace(value)
				break
			}
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if kib, err := parseField(string(text), "MemTotal:"); err == nil {
			m.MemoryMB = kib >> 10
		}
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		m.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	return m
}

// SyncTimes measures how long it takes, in dir, to append 4 KiB to a file and
// fdatasync it: n times, in ascending order.
func SyncTimes(dir string, n int) (times []time.Duration, err error) {
	path := filepath.Join(dir, "fdatasync")
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("measure fdatasync: %w", err)
	}
	defer func() {
		_ = file.Close()
		_ = os.Remove(path)
	}()
	block := make([]byte, 4096)
	for range n {
		began := time.Now()
		if _, err := file.Write(block); err != nil {
			return nil, fmt.Errorf("measure fdatasync: %w", err)
		}
		if err := syscall.Fdatasync(int(file.Fd())); err != nil {
			return nil, fmt.Errorf("measure fdatasync of %s: %w", path, err)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times, nil
}
