package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// runShell runs a script with arguments and returns what it wrote.
func runShell(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...).Output()
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// openTerminal returns the two ends of a new terminal.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	raw, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number, failed := 0, error(nil)
	err = raw.Control(func(fd uintptr) {
		unlocked := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		failed = errors.Join(unlocked, failed)
	})
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = theirs.Close() })
	return ours, theirs
}

// screen is a terminal in which a shell script runs.
type screen struct {
	keys *os.File
	text syncBuffer
}

// startScreen runs a script, with arguments, in a terminal.
func startScreen(t *testing.T, script string, args ...string) *screen {
	t.Helper()
	ours, theirs := openTerminal(t)
	cmd := exec.Command("sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	s := &screen{keys: ours}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&s.text, ours)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = ours.Close() // hangs up
		<-read
		if t.Failed() {
			t.Logf("the terminal:\n%s", &s.text)
		}
	})
	return s
}

// enter types on the terminal and waits for what it shows then.
func (s *screen) enter(t *testing.T, keys, want string) {
	t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the terminal shows "+want, func() bool { return strings.Contains(s.text.String(), want) })
}

// reader is one process that waits for lines: with children, it would depend on the
// shell whether Ctrl-Z can be told from a child that hangs.
const reader = `
	trap "echo interrupted; exit 8" INT
	echo reading
	while read line; do echo command got $line; done`

// lockTerminal has a shell script in a terminal run a command under lock, and after it
// read from the terminal itself.
func lockTerminal(t *testing.T, d *devCluster) {
	s := startScreen(t, `"$@"; echo code $?; read line; echo script got $line`,
		binary, "lock", "terminal", "--endpoints", d.endpoints(), "--", "sh", "-c", reader)
	s.enter(t, "", "reading")
	s.enter(t, "hello\n", "command got hello")
	s.enter(t, "\x1a", "^Z") // which does not stop it for good
	s.enter(t, "again\n", "command got again")
	s.enter(t, "\x03", "interrupted")
	s.enter(t, "", "code 8")
	s.enter(t, "goodbye\n", "script got goodbye")
}

// lockForeground has lock started in the background, and brought to the foreground while
// its command wants to read.
func lockForeground(t *testing.T, d *devCluster) {
	s := startScreen(t, `set -m; "$@" & read line; echo script got $line; fg; echo code $?`,
		binary, "lock", "foreground", "--endpoints", d.endpoints(), "--", "sh", "-c", reader)
	s.enter(t, "", "reading")
	s.enter(t, "mine\n", "script got mine")
	s.enter(t, "yours\n", "command got yours")
	s.enter(t, "\x03", "code 8")
}
