package main

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// adoptOrphans makes the processes whose parents end, having descended from this one,
// children of this one: so a guard finds whatever COMMAND started, also if it has left
// COMMAND's process group, and waits for it.
func adoptOrphans() {
	// Every Linux has it since 3.4; without it, the process group is what there is.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// commandAttributes puts COMMAND in a process group of its own. The kernel ends it if
// its guard is killed.
func commandAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killChildren kills the children of this process. Those that they leave behind become
// children of this one.
func killChildren() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // then the process group is what there is
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		// What can be waited for is a child, and its number cannot be another's.
		if unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// groupGone reports whether nobody is left in a process group that COMMAND led, as far
// as waiting does not show it.
func groupGone(group int) bool { return syscall.Kill(-group, 0) == syscall.ESRCH }

// thisProgram is the file to start this program from, also if it was replaced or
// removed meanwhile.
func thisProgram() (string, error) { return "/proc/self/exe", nil }
