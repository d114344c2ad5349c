package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLock is lock with real commands against a real cluster, which it loses in the end.
func TestLock(t *testing.T) {
	d := startDev(t, 3)
	t.Run("up", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *devCluster){
			"passes on":            lockPassesOn,
			"one at a time":        lockOneAtATime,
			"killed":               lockKilled,
			"guard killed":         lockGuardKilled,
			"stopped":              lockStopped,
			"signals":              lockSignals,
			"signal while waiting": lockInterruptedWaiting,
			"leftovers":            lockLeftovers,
			"leftovers may finish": lockLeftoversFinish,
			"lost":                 lockLost,
			"file descriptors":     lockDescriptors,
			"cannot be executed":   lockNotExecutable,
			"in a terminal":        lockTerminal,
			"from the background":  lockForeground,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, d)
			})
		}
	})
	t.Run("down", func(t *testing.T) { lockLosesCluster(t, d) })
}

// locked is a running lock with a shell script as its command.
type locked struct {
	*program
	key string
	dir string
}

// lock starts a script under the lock of a key. The script finds itself in a folder of
// its own.
func (d *devCluster) lock(t *testing.T, key, script string, flags ...string) *locked {
	t.Helper()
	l := &locked{key: key, dir: t.TempDir()}
	args := append([]string{"lock", key, "--endpoints", d.endpoints()}, flags...)
	l.program = launch(t, append(args, "--", "sh", "-c", "cd "+l.dir+"\n"+script)...)
	t.Cleanup(func() {
		if t.Failed() {
			l.clear()
		}
	})
	return l
}

// clear kills the processes that the script has noted: what is left of them would keep
// the test waiting for the end of their output.
func (l *locked) clear() {
	files, err := filepath.Glob(filepath.Join(l.dir, "*"))
	if err != nil {
		return
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if pid, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// pid waits for the script to write a process id to a file, and returns it.
func (l *locked) pid(t *testing.T, name string) int {
	t.Helper()
	pid := 0
	eventually(t, l.key+" writes "+name, func() bool {
		text, err := os.ReadFile(filepath.Join(l.dir, name))
		line, whole := strings.CutSuffix(string(text), "\n")
		if err != nil || !whole {
			return false
		}
		pid, err = strconv.Atoi(line)
		return err == nil
	})
	return pid
}

// ends waits for the end of lock, and checks its code and what it has said.
func (l *locked) ends(t *testing.T, code int, said ...string) outcome {
	t.Helper()
	got := l.finish(t)
	check(t, "code", got.code, code)
	for _, want := range said {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("no %q in %s", want, got.stderr)
		}
	}
	return got
}

// says waits until the command, or lock about it, has written something.
func (l *locked) says(t *testing.T, what string) {
	t.Helper()
	eventually(t, l.key+" says "+what, func() bool {
		return strings.Contains(l.stdout.String(), what) || strings.Contains(l.stderr.String(), what)
	})
}

// free checks that nobody holds the key any more.
func (d *devCluster) free(t *testing.T, key string) {
	t.Helper()
	var r recordJSON
	d.must(t, &r, "get", key)
	check(t, "remaining of "+key, r.RemainingMS, int64(0))
}

func checkGone(t *testing.T, what string, pid int) {
	t.Helper()
	if !gone(pid) {
		t.Errorf("%s, process %d, is left", what, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Scripts: one that writes the process ids of itself, its guard and two children, one of
// which leaves the group, and one that goes on until it is killed.
const (
	family   = "echo $PPID >guard; sleep 100 & echo $! >child; setsid sleep 100 & echo $! >daemon; echo $$ >self; wait\n"
	stubborn = "trap 'echo asked' TERM; echo $PPID >guard; echo $$ >self; " + beats
)

func (l *locked) family(t *testing.T) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, name := range []string{"guard", "child", "daemon", "self"} {
		pids[name] = l.pid(t, name)
	}
	return pids
}

func lockPassesOn(t *testing.T, d *devCluster) {
	l := d.lock(t, "passes", `echo $LEASENODE_KEY $LEASENODE_EPOCH; exit 7`)
	got := l.ends(t, 7, `acquired "passes" at epoch 1`, `released "passes"`)
	check(t, "output", got.stdout, "passes 1\n")
	d.free(t, "passes")

	l = d.lock(t, "passes", `kill -KILL $$`)
	l.ends(t, exitSignal+int(syscall.SIGKILL), "epoch 2", "released")
	l = d.lock(t, "passes", `exit 0`, "-o", "json", "--wait", "0s", "--owner", "me")
	check(t, "json", l.ends(t, exitDone).stdout, "")
	var r recordJSON
	d.must(t, &r, "get", "passes")
	check(t, "owner", r.Owner, "me")
}

// lockOneAtATime has contenders write to one file when they begin and end.
func lockOneAtATime(t *testing.T, d *devCluster) {
	var r recordJSON
	d.must(t, &r, "acquire", "one", "--owner", "other", "--ttl", "1h")
	log := filepath.Join(t.TempDir(), "log")
	var all []*locked
	want := ""
	for i := range 4 {
		all = append(all, d.lock(t, "one", fmt.Sprintf(`echo begin $LEASENODE_EPOCH >>%s; sleep 0.2; echo end $LEASENODE_EPOCH >>%[1]s`, log)))
		want += fmt.Sprintf("begin %d\nend %[1]d\n", i+2)
	}
	for _, l := range all {
		l.says(t, `waiting for "one", held by "other" at epoch 1`)
	}
	d.must(t, &r, "release", "one", "--owner", "other", "--epoch", "1")
	for _, l := range all {
		l.ends(t, exitDone)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	check(t, "log", string(text), want)
}

// lockKilled holds that the command dies with lock, and all that it has started.
func lockKilled(t *testing.T, d *devCluster) {
	l := d.lock(t, "killed", family, "--ttl", "1h") // at once, and not at the end of the lease
	pids := l.family(t)
	l.signal(t, syscall.SIGKILL)
	for name, pid := range pids {
		eventually(t, name+" is gone", func() bool { return gone(pid) })
	}
}

func lockGuardKilled(t *testing.T, d *devCluster) {
	l := d.lock(t, "guard-killed", family)
	pids := l.family(t)
	if err := syscall.Kill(pids["guard"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	l.ends(t, exitFailed, "the guard of sh has died", `released "guard-killed"`)
	for name, pid := range pids {
		checkGone(t, name, pid)
	}
	d.free(t, "guard-killed")
}

// lockStopped holds that a lock that is stopped, and so cannot renew, does not keep its
// command running until somebody else has the key.
func lockStopped(t *testing.T, d *devCluster) {
	l := d.lock(t, "stopped", stubborn, "--ttl", "4s")
	self := l.pid(t, "self")
	l.signal(t, syscall.SIGSTOP)
	next := d.lock(t, "stopped", fmt.Sprintf(`if kill -0 %d; then echo overlap; fi`, self))
	got := next.ends(t, exitDone, "epoch 2")
	check(t, "what the next one sees", got.stdout, "")
	l.signal(t, syscall.SIGCONT)
	l.ends(t, exitLost, `fenced from "stopped" at epoch 1`, "killed sh", "sh was ended")
	checkGone(t, "the command", self)
}

func lockSignals(t *testing.T, d *devCluster) {
	l := d.lock(t, "signals", `
		trap 'echo hup' HUP; trap 'echo usr1' USR1; trap 'echo int' INT; trap 'echo term; exit 9' TERM
		echo $$ >self; while :; do sleep 0.05; done`)
	l.pid(t, "self")
	for s, word := range map[syscall.Signal]string{syscall.SIGHUP: "hup", syscall.SIGUSR1: "usr1", syscall.SIGINT: "int"} {
		l.signal(t, s)
		l.says(t, word)
	}
	l.terminate(t)
	l.ends(t, 9, `released "signals"`)

	l = d.lock(t, "signals", `echo $$ >self; sleep 100`)
	l.pid(t, "self")
	l.interrupt(t)
	l.ends(t, exitSignal+int(syscall.SIGINT), `released "signals"`)
	d.free(t, "signals")
}

func lockInterruptedWaiting(t *testing.T, d *devCluster) {
	var r recordJSON
	d.must(t, &r, "acquire", "busy", "--owner", "other", "--ttl", "1h")
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		l := d.lock(t, "busy", `echo never`)
		l.says(t, `waiting for "busy", held by "other" at epoch 1`)
		l.signal(t, syscall.SIGSTOP)
		l.signal(t, syscall.SIGCONT) // which is no reason to give up
		l.signal(t, s)
		got := l.ends(t, exitSignal+int(s), s.String()+` while waiting for "busy"`)
		check(t, "output", got.stdout, "")
	}
}

// lockLeftovers holds that nothing that the command has started outlives it, and the key
// is given back after that.
func lockLeftovers(t *testing.T, d *devCluster) {
	l := d.lock(t, "leftovers", `
		(trap '' TERM; sleep 100) & echo $! >child
		setsid sh -c 'sleep 100 & echo $! >deep; wait' & echo $! >daemon
		while ! test -s deep; do sleep 0.02; done
		exit 3`, "--ttl", "2s")
	got := l.ends(t, 3, `released "leftovers"`)
	if strings.Contains(got.stderr, "killed sh") {
		t.Errorf("%s", got.stderr)
	}
	for _, name := range []string{"child", "daemon", "deep"} {
		checkGone(t, name, l.pid(t, name))
	}
}

func lockLeftoversFinish(t *testing.T, d *devCluster) {
	l := d.lock(t, "finish", `(sleep 0.3; echo the last words) &`, "--ttl", "1m")
	check(t, "output", l.ends(t, exitDone).stdout, "the last words\n")
}

// lockLost holds that a command whose lease is over at the store is killed as soon as
// that is known.
func lockLost(t *testing.T, d *devCluster) {
	l := d.lock(t, "lost", stubborn, "--owner", "me", "--ttl", "3s")
	self := l.pid(t, "self")
	var r recordJSON
	d.must(t, &r, "release", "lost", "--owner", "me", "--epoch", "1")
	got := l.ends(t, exitLost, `fenced from "lost" at epoch 1 (lease_lost, expired)`, "killed sh")
	check(t, "what it was told", got.stdout, "")
	if strings.Contains(got.stderr, "released") {
		t.Errorf("%s", got.stderr)
	}
	checkGone(t, "the command", self)
}

// lockDescriptors holds that the command has the file descriptors that lock was started
// with, and none of lock's own.
func lockDescriptors(t *testing.T, d *devCluster) {
	const script = `exec 3</dev/null 9</dev/null; cd /proc/self/fd; exec "$@"`
	list := []string{"sh", "-c", "echo /proc/$$/fd/*"}
	plain := runShell(t, script, list...)
	under := runShell(t, script, append([]string{binary, "lock", "descriptors", "--endpoints", d.endpoints(), "--"}, list...)...)
	numbers := func(s string) string {
		var names []string
		for _, path := range strings.Fields(s) {
			names = append(names, filepath.Base(path))
		}
		return strings.Join(names, " ")
	}
	check(t, "file descriptors", numbers(under), numbers(plain))
}

func lockNotExecutable(t *testing.T, d *devCluster) {
	path := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(path, []byte("#!/no/such/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := launch(t, "lock", "broken", "--endpoints", d.endpoints(), "--", path).finish(t)
	check(t, "code", got.code, exitNotFound)
	if !strings.Contains(got.stderr, "cannot run") || !strings.Contains(got.stderr, "released") {
		t.Errorf("%s", got.stderr)
	}
	d.free(t, "broken")
}

// beats has a script note that it runs, by the time of a file, at each turn of a loop.
const beats = "while :; do : >beat; sleep 0.05; done\n"

// lastBeat is when a script with beats ran last: that it has gone may be seen much later.
func (l *locked) lastBeat(t *testing.T) time.Time {
	t.Helper()
	info, err := os.Stat(filepath.Join(l.dir, "beat"))
	if err != nil {
		t.Fatal(err)
	}
	return info.ModTime()
}

// lockLosesCluster kills every node under commands of which one stops when it is asked
// to, one does not, and one has a guard that cannot act.
func lockLosesCluster(t *testing.T, d *devCluster) {
	const ttl = 8 * time.Second // of which commands have a tenth to stop, on a busy machine
	meek := d.lock(t, "meek", `trap 'echo asked; exit 0' TERM; echo $$ >self; `+beats, "--ttl", ttl.String())
	tough := d.lock(t, "tough", stubborn, "--ttl", ttl.String())
	unguarded := d.lock(t, "unguarded", stubborn, "--ttl", ttl.String())
	pids := map[string]int{}
	for _, l := range []*locked{meek, tough, unguarded} {
		pids[l.key] = l.pid(t, "self")
	}
	if err := syscall.Kill(unguarded.pid(t, "guard"), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pids["meek"], syscall.SIGSTOP); err != nil { // has to be continued to hear
		t.Fatal(err)
	}
	for _, n := range d.ready.Nodes {
		d.kill(t, n.ID)
	}
	// The last renewals that were answered were sent before this.
	down := time.Now()
	for _, l := range []*locked{meek, tough, unguarded} {
		eventually(t, l.key+" is gone", func() bool { return gone(pids[l.key]) })
		if took := l.lastBeat(t).Sub(down); took > ttl {
			t.Errorf("%s has outlived its lease by %v", l.key, took-ttl)
		}
	}
	said := []string{"fenced from", "(lease_expired_locally, unreachable)", "sh was ended"}
	check(t, "what the meek one was told", meek.ends(t, exitLost, said...).stdout, "asked\n")
	if strings.Contains(meek.stderr.String(), "killed") {
		t.Errorf("%s", &meek.stderr)
	}
	tough.ends(t, exitLost, append(said, "killed sh")...)
	unguarded.ends(t, exitLost, said...)
}
