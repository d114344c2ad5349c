package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of CPU times in /proc, the same on every Linux.
const tick = 10 * time.Millisecond

// Usage is what a process has used up since it began.
type Usage struct {
	// CPU is user and system time, in steps of 10 ms.
	CPU time.Duration
	// Written is how many bytes it had written to storage, or into the page cache to be
	// written later.
	Written int64
}

// Minus returns what was used since before.
func (u Usage) Minus(before Usage) Usage {
	return Usage{CPU: u.CPU - before.CPU, Written: u.Written - before.Written}
}

// Plus returns the sum.
func (u Usage) Plus(other Usage) Usage {
	return Usage{CPU: u.CPU + other.CPU, Written: u.Written + other.Written}
}

// UsageOf reads the usage of a process.
func UsageOf(pid int) (Usage, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	cpu, err := parseCPU(string(stat))
	if err != nil {
		return Usage{}, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read the writes of process %d: %w", pid, err)
	}
	written, err := parseField(string(io), "write_bytes:")
	if err != nil {
		return Usage{}, fmt.Errorf("read the writes of process %d: %w", pid, err)
	}
	return Usage{CPU: cpu, Written: written}, nil
}

// OwnCPU returns the CPU time of this process.
func OwnCPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read the CPU time of this process: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// ResidentBytes returns how much memory a process has resident.
func ResidentBytes(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	kib, err := parseField(string(status), "VmRSS:")
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return kib << 10, nil
}

// parseCPU reads user and system time from /proc/PID/stat, in which the name of the
// program, in parentheses, may hold anything.
func parseCPU(stat string) (time.Duration, error) {
	const user, system = 11, 12 // counted from behind the name
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, errors.New("too few fields")
	}
	var ticks int64
	for _, field := range fields[user : system+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * tick, nil
}

// parseField reads the number on the line that begins with name.
func parseField(text, name string) (int64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name); ok {
			fields := strings.Fields(value)
			if len(fields) == 0 {
				break
			}
			return strconv.ParseInt(fields[0], 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no %s", name)
}
