package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/portblock/porttest"
)

// TestDevLife is the life of a cluster as its user sees it: it serves from every
// node, loses nodes and gets them back, stops cleanly, and carries on where it was.
func TestDevLife(t *testing.T) {
	d := startDev(t, 3)
	var r recordJSON
	for k := range d.nodes {
		key := "k" + strconv.Itoa(k)
		got := launch(t, "acquire", key, "--owner", "o", "--ttl", "1h", "--endpoints", address(d.api+k)).finish(t)
		check(t, "acquire through node "+strconv.Itoa(k), got.code, exitDone)
	}

	follower := "n1"
	if d.ready.Leader == follower {
		follower = "n2"
	}
	d.loseAndRegain(t, follower)
	d.loseAndRegain(t, d.leader(t))

	got := launch(t, "dev", "--data-dir", d.dir).finish(t)
	if got.code != exitFailed || !strings.Contains(got.stderr, `another "leasenode dev" runs in `+d.dir) {
		t.Errorf("a second dev: %+v", got)
	}

	d.stopsCleanly(t, d.terminate)
	d.refusesOtherLayout(t)
	d.start(t)
	for k := range d.nodes {
		d.must(t, &r, "get", "k"+strconv.Itoa(k))
		if r.Owner != "o" || r.Epoch != 1 || r.RemainingMS == 0 {
			t.Errorf("after the restart: %+v", r)
		}
	}
	d.stopsCleanly(t, d.interrupt)
}

func (d *devCluster) leader(t *testing.T) string {
	t.Helper()
	var status statusJSON
	eventually(t, "somebody leads", func() bool { d.must(t, &status, "status"); return status.Leader != "" })
	return status.Leader
}

// loseAndRegain kills a node, looks that the others go on, and has dev bring it back.
func (d *devCluster) loseAndRegain(t *testing.T, id string) {
	t.Helper()
	before := d.pidOf(t, id)
	d.kill(t, id)
	if want := "dev restart " + id + " --data-dir " + d.dir; !strings.Contains(d.stderr.String(), want) {
		t.Errorf("dev does not say how to bring it back: %s", &d.stderr)
	}
	var r recordJSON
	d.must(t, &r, "acquire", "without-"+id, "--owner", "o")
	var status statusJSON
	eventually(t, "the others see that it is gone", func() bool {
		d.must(t, &status, "status")
		k := slices.IndexFunc(status.Members, func(m memberJSON) bool { return m.ID == id })
		return len(status.Members) == d.nodes && !status.Members[k].Healthy && status.Leader != id
	})

	var reply controlReply
	got := launch(t, "dev", "restart", id, "--data-dir", d.dir, "-o", "json").finish(t)
	check(t, "dev restart "+id+" "+got.stderr, got.code, exitDone)
	d.must(t, &status, "status")
	check(t, "healthy nodes", strings.Count(d.client(t, "status").stdout, `"healthy":true`), d.nodes)
	if pid := d.pidOf(t, id); pid == before {
		t.Errorf("%s still is process %d; %+v", id, pid, reply)
	}
}

// stopsCleanly stops dev and looks for what is left over.
func (d *devCluster) stopsCleanly(t *testing.T, stop func(*testing.T)) {
	t.Helper()
	var pids []int
	for _, n := range d.ready.Nodes {
		pids = append(pids, d.pidOf(t, n.ID))
	}
	stop(t)
	got := d.finish(t)
	check(t, "code", got.code, exitDone)
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d is left over", pid)
		}
	}
	left := []string{filepath.Join(d.dir, controlFile)}
	for _, n := range d.ready.Nodes {
		left = append(left, filepath.Join(d.dir, n.ID, pidFile))
	}
	for _, path := range left {
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%s is left over (%v)", path, err)
		}
	}
	nobody := launch(t, "dev", "restart", "n1", "--data-dir", d.dir).finish(t)
	if nobody.code != exitFailed || !strings.Contains(nobody.stderr, `no "leasenode dev" runs in `+d.dir) {
		t.Errorf("dev restart: %+v", nobody)
	}
}

func (d *devCluster) refusesOtherLayout(t *testing.T) {
	t.Helper()
	for _, change := range [][]string{{"--nodes", "5"}, {"--peer-port", "1234"}} {
		got := launch(t, append(slices.Clone(d.args), change...)...).finish(t)
		if got.code != exitUsage || !strings.Contains(got.stderr, d.dir+" holds a cluster") {
			t.Errorf("%v: %+v", change, got)
		}
	}
}

// TestDevKilled holds that the nodes of a dev that is killed die with it.
func TestDevKilled(t *testing.T) {
	d := startDev(t, 3)
	d.signal(t, syscall.SIGKILL)
	d.finish(t)
	for _, n := range d.ready.Nodes {
		t.Cleanup(func() {
			if t.Failed() {
				_ = syscall.Kill(n.PID, syscall.SIGKILL)
			}
		})
	}
	for _, n := range d.ready.Nodes {
		eventually(t, n.ID+" is gone", func() bool { return gone(n.PID) })
	}
	d.start(t)
	d.stopsCleanly(t, d.interrupt)
}

// TestDevFiveSurvivesTwo holds that five nodes go on without any two.
func TestDevFiveSurvivesTwo(t *testing.T) {
	d := startDev(t, 5)
	for running := 4; running > 2; running-- {
		d.kill(t, d.leader(t))
		if want := strconv.Itoa(running) + " of 5 nodes run, and the cluster goes on"; !strings.Contains(d.stderr.String(), want) {
			t.Errorf("no %q in %s", want, &d.stderr)
		}
		var r recordJSON
		d.must(t, &r, "acquire", "k", "--owner", "o", "--ttl", "1s", "--wait", "60s")
	}
	d.interrupt(t)
	check(t, "code", d.finish(t).code, exitDone)
}

func TestDevRestartsRunningNode(t *testing.T) {
	d := startDev(t, 1)
	before := d.pidOf(t, "n1")
	got := launch(t, "dev", "restart", "n1", "--data-dir", d.dir).finish(t)
	check(t, "code", got.code, exitDone)
	if d.pidOf(t, "n1") == before || strings.Contains(d.stderr.String(), "died") {
		t.Errorf("%s", &d.stderr)
	}
	d.kill(t, "n1")
	if want := "0 of 1 nodes run, which is no majority"; !strings.Contains(d.stderr.String(), want) {
		t.Errorf("no %q in %s", want, &d.stderr)
	}
	got = launch(t, "dev", "restart", "n4", "--data-dir", d.dir).finish(t)
	if got.code != exitFailed || !strings.Contains(got.stderr, `there is no node "n4" here`) {
		t.Errorf("%+v", got)
	}
}

// TestDevTellsHTTPAddresses holds that the table has them, if there are any.
func TestDevTellsHTTPAddresses(t *testing.T) {
	for port, want := range map[int]bool{0: false, 7301: true} {
		var stdout bytes.Buffer
		a := &app{process: process{name: "leasenode", stdout: &stdout}, output: newChoice("table", "json")}
		s, err := newSupervisor(a, devPlan{nodes: 1, dir: "d", apiPort: 7201, peerPort: 7101, httpPort: port, logLevel: newLogLevel()})
		if err != nil {
			t.Fatal(err)
		}
		s.current["n1"] = &nodeProcess{cmd: &exec.Cmd{Process: &os.Process{Pid: 1}}}
		if err := s.tellReady(holder.Status{Leader: "n1"}); err != nil {
			t.Fatal(err)
		}
		check(t, stdout.String(), strings.Contains(stdout.String(), "HTTP ADDRESS") && strings.Contains(stdout.String(), address(7301)), want)
	}
}

// TestDevWithoutMajority holds that a node that is brought back without company is told
// so, with the command that helps, and that nodes can be brought back together.
func TestDevWithoutMajority(t *testing.T) {
	ports := porttest.Row(t, 2*maxDevNodes)
	d := &devCluster{dir: t.TempDir(), nodes: 3, api: ports}
	d.args = []string{
		"dev", "--data-dir", d.dir, "--api-port", strconv.Itoa(ports),
		"--peer-port", strconv.Itoa(ports + 3), "--http-port", strconv.Itoa(ports + 6), "-o", "json",
	}
	d.start(t)
	check(t, "HTTP address", d.ready.Nodes[2].HTTPAddr, address(ports+8))
	for _, n := range d.ready.Nodes {
		d.kill(t, n.ID)
	}
	alone := launch(t, "dev", "restart", "n1", "--data-dir", d.dir).finish(t)
	for _, want := range []string{"only 1 of 3 nodes do, which is no majority", "dev restart n1 n2 n3 --data-dir " + d.dir} {
		if alone.code != exitFailed || !strings.Contains(alone.stderr, want) {
			t.Errorf("no %q in %+v", want, alone)
		}
	}
	together := launch(t, "dev", "restart", "n3", "n2", "n4", "n3", "--data-dir", d.dir).finish(t)
	check(t, "code with one that is not there", together.code, exitFailed)
	check(t, "lines", strings.Count(together.stdout, "\n"), 2)
	check(t, "one named twice is restarted once", strings.Contains(together.stderr, "ended"), false)
	if !strings.HasPrefix(together.stdout, "n2 is back: process ") || !strings.Contains(together.stdout, "\nn3 is back: process ") || !strings.Contains(together.stderr, `there is no node "n4" here`) {
		t.Errorf("%+v", together)
	}
	// n1 was not waited for.
	eventually(t, "three healthy nodes", func() bool { return strings.Count(d.client(t, "status").stdout, `"healthy":true`) == 3 })
	d.stopsCleanly(t, d.interrupt)
}

func TestDevPortInUse(t *testing.T) {
	for _, flag := range []string{"api-port", "peer-port", "http-port"} {
		t.Run(flag, func(t *testing.T) {
			first := porttest.Row(t, 9)
			plan := map[string]int{"api-port": first, "peer-port": first + 3, "http-port": first + 6}
			taken, err := net.Listen("tcp", address(plan[flag]+1))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = taken.Close() }()
			args := []string{"dev", "--data-dir", filepath.Join(t.TempDir(), "d")}
			for name, port := range plan {
				args = append(args, "--"+name, strconv.Itoa(port))
			}
			got := launch(t, args...).finish(t)
			check(t, "code", got.code, exitFailed)
			check(t, "lines", strings.Count(got.stderr, "\n"), 1)
			if !strings.Contains(got.stderr, strconv.Itoa(plan[flag]+1)) || !strings.Contains(got.stderr, "--"+flag) {
				t.Errorf("the message names not the port and the flag: %s", got.stderr)
			}
		})
	}
}

func TestDevDirUnusable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := launch(t, "dev", "--data-dir", file).finish(t)
	if got.code != exitFailed || !strings.Contains(got.stderr, "cannot use --data-dir "+file) {
		t.Errorf("%+v", got)
	}
}
