package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// shell is a node that is a shell script instead.
func shell(t *testing.T, script string) *nodeProcess {
	t.Helper()
	m := devMember{id: "n1", log: filepath.Join(t.TempDir(), "node.log"), args: []string{"-c", script}}
	if err := os.WriteFile(m.log, []byte("leasenode: an error of an earlier life\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := startNode("/bin/sh", []string{"LEASENODE_DIAL=n1=h:1", "KEPT=yes"}, m, make(chan *nodeProcess, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	return p
}

func TestNodeSaysWhyItDied(t *testing.T) {
	for script, want := range map[string]string{
		"exit 3": "exit status 3",
		"echo 'leasenode: the disk is full'; echo 'x [INFO] n1: bye'; exit 1": "exit status 1; its log says: leasenode: the disk is full",
		"echo 'x [ERROR] n1: bad'; kill -9 $$":                                "signal: killed",
	} {
		p := shell(t, script)
		<-p.done
		check(t, script, p.why(), want)
	}
}

func TestNodeEnvironment(t *testing.T) {
	p := shell(t, `echo "$LEASENODE_DIAL,$KEPT,$LEASENODE_LIFELINE_FD"`)
	<-p.done
	text, err := os.ReadFile(p.member.log)
	if err != nil || !strings.HasSuffix(string(text), "\n,yes,3\n") {
		t.Errorf("%s, %v", text, err)
	}
}

// TestNodeSeesEndOfDev holds that the lifeline is cut when dev's end of it is.
func TestNodeSeesEndOfDev(t *testing.T) {
	p := shell(t, `cat <&3 && echo "leasenode: cut" && exit 9`)
	if err := p.lifeline.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.done
	check(t, "end", p.why(), "exit status 9; its log says: leasenode: cut")
}

func TestStubbornNodeIsKilled(t *testing.T) {
	p := shell(t, `trap '' TERM; echo ready; while :; do sleep 0.05; done`)
	eventually(t, "it ignores SIGTERM", func() bool {
		text, err := os.ReadFile(p.member.log)
		return err == nil && strings.HasSuffix(string(text), "ready\n")
	})
	p.ask()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.stopped(ctx); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Error(err)
	}
}

func TestObedientNodeIsNotKilled(t *testing.T) {
	p := shell(t, `exec sleep 60`)
	p.ask()
	if err := p.stopped(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStartReportsNodeThatEnds holds that a node that ends while the cluster starts
// ends the start, with its reason.
func TestStartReportsNodeThatEnds(t *testing.T) {
	var stderr bytes.Buffer
	a := &app{process: process{stderr: &stderr, dial: func([]string) (cluster, error) {
		return fakeCluster{statusErr: lease.ErrUnavailable}, nil
	}}, output: newChoice("table", "json")}
	members := []devMember{
		{id: "n1", log: filepath.Join(t.TempDir(), "log"), args: []string{"-c", "exec sleep 60"}},
		{id: "n2", log: filepath.Join(t.TempDir(), "log"), args: []string{"-c", "echo leasenode: no room; exit 1"}},
	}
	s := &supervisor{app: a, exe: "/bin/sh", members: members, current: map[string]*nodeProcess{}, ended: make(chan *nodeProcess, 4)}
	err := s.startAll(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ended at once: exit status 1; its log says: leasenode: no room") {
		t.Error(err)
	}
	if err := s.stopAll(); err != nil {
		t.Error(err)
	}
	for id, p := range s.current {
		if !gone(p.pid()) {
			t.Errorf("%s is left over", id)
		}
	}
}

// TestStartWaitsForAll holds that a cluster is not said to run before it has a leader
// and every node is healthy.
func TestStartWaitsForAll(t *testing.T) {
	whole := holder.Status{Leader: "n1", Members: []holder.Member{{ID: "n1", Healthy: true}, {ID: "n2", Healthy: true}}}
	leaderless, half := whole, whole
	leaderless.Leader = ""
	half.Members = []holder.Member{{ID: "n1", Healthy: true}, {ID: "n2"}}
	c := &risingCluster{statuses: []holder.Status{{}, leaderless, half, whole}}
	s := &supervisor{
		app:     &app{process: process{dial: func([]string) (cluster, error) { return c, nil }}},
		members: []devMember{{id: "n1"}, {id: "n2"}},
	}
	status, err := s.ready(t.Context())
	if err != nil || healthyMembers(status) != 2 || status.Leader != "n1" || len(c.statuses) != 0 {
		t.Errorf("%+v, %v, with %d to come", status, err, len(c.statuses))
	}
}

// risingCluster has a new status each time it is asked; the first answer is none.
type risingCluster struct {
	fakeCluster
	statuses []holder.Status
}

func (c *risingCluster) Status(context.Context) (holder.Status, error) {
	status := c.statuses[0]
	c.statuses = c.statuses[1:]
	if len(status.Members) == 0 {
		return status, lease.ErrUnavailable
	}
	return status, nil
}

func TestLifeline(t *testing.T) {
	ctx, release, err := withLifeline(t.Context(), nil)
	if err != nil || ctx != t.Context() {
		t.Errorf("without a lifeline: %v", err)
	}
	release()
	if _, _, err := withLifeline(t.Context(), []string{lifelineEnv + "=x"}); lease.CodeOf(err) != lease.CodeInvalid {
		t.Error(err)
	}
	for _, cut := range []string{"cut", "not cut"} {
		var ends [2]int
		if err := syscall.Pipe(ends[:]); err != nil {
			t.Fatal(err)
		}
		ctx, release, err := withLifeline(t.Context(), []string{lifelineEnv + "=" + strconv.Itoa(ends[0])})
		if err != nil {
			t.Fatal(err)
		}
		if cut == "cut" {
			if err := syscall.Close(ends[1]); err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			check(t, "cause", context.Cause(ctx), errLifelineCut)
		}
		release()
		if cut != "cut" {
			_ = syscall.Close(ends[1])
		}
	}
}

// TestControlRefuses holds that nobody without the token can restart a node, and
// that the file with the token is its owner's only.
func TestControlRefuses(t *testing.T) {
	home, err := openDevHome(devPlan{dir: t.TempDir(), nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { check(t, "unlock", home.close(), nil) }()
	// Nobody watches: a request that got through would wait.
	door, err := openControl(home, &supervisor{restarts: make(chan restartRequest)})
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(home.dir, controlFile))
	if err != nil {
		t.Fatal(err)
	}
	check(t, "mode", info.Mode().Perm(), os.FileMode(0o600))
	for request, want := range map[string]string{
		`{"token":"guess","restart":"n1"}`:           "the token is wrong",
		`{"restart":"n1"}`:                           "the token is wrong",
		"GET / HTTP/1.1\r\n\r\n":                     "the request cannot be read",
		strings.Repeat(" ", maxControlBytes):         "the request cannot be read",
		`{"token":"` + door.token + `","restart":7}`: "the request cannot be read",
	} {
		if got := knock(t, door, request); !strings.HasPrefix(got.Error, want) {
			t.Errorf("%.40s: %+v", request, got)
		}
	}
	waiting := make(chan error)
	go func() {
		_, err := askControl(t.Context(), home.dir, "n1")
		waiting <- err
	}()
	waitForRequest(t, door)
	check(t, "close", door.close(), nil)
	if err := <-waiting; err == nil {
		t.Error("a request was answered by nobody")
	}
}

// waitForRequest waits until door serves a request that got through.
func waitForRequest(t *testing.T, door *control) {
	t.Helper()
	r := <-door.nodes.restarts
	check(t, "node", r.id, "n1")
}

func knock(t *testing.T, door *control, request string) controlReply {
	t.Helper()
	conn, err := net.Dial("tcp", door.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	var reply controlReply
	if err := json.NewDecoder(conn).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	return reply
}
