package crashtest_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/portblock"
	"github.com/leasenode/leasenode/internal/portblock/porttest"
	"github.com/leasenode/leasenode/lease"
)

// binary is the program under test, built once.
var binary string

// nodeEnv has this test program be a node whose disk can be made to hang, by SIGUSR1,
// or to fail, by SIGUSR2.
const nodeEnv = "CRASHTEST_NODE"

var logStore = flag.String("log-store", "", "how all nodes keep their logs, bolt or wal; empty for some in each way")

func TestMain(m *testing.M) {
	if os.Getenv(nodeEnv) != "" {
		os.Exit(serveFaulty(os.Args[1:]))
	}
	dir, err := os.MkdirTemp("", "crashtest")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "leasenode")
	build := exec.Command("go", "build", "-o", binary, "../../cmd/leasenode")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// process is one run of a node.
type process struct {
	cmd    *exec.Cmd
	log    *logBuffer
	exited chan struct{}
}

// logBuffer keeps what a process writes.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// cluster is a cluster of processes on loopback. Node i is called n(i+1).
type cluster struct {
	t     *testing.T
	dirs  []string
	peers []string
	apis  []string
	// list is --cluster; flags are added to each node's command line.
	list  string
	flags func(i int) []string
	ports *portblock.Block
	// hangable has the nodes run with a disk that can be made to hang or to fail.
	hangable bool
	procs    []*process
	all      []*process // those that have ended included
}

func newCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := &cluster{t: t, ports: porttest.Claim(t), procs: make([]*process, n), flags: func(int) []string { return nil }}
	var items []string
	for i := range n {
		c.dirs = append(c.dirs, t.TempDir())
		c.peers = append(c.peers, c.freeAddr())
		c.apis = append(c.apis, c.freeAddr())
		items = append(items, fmt.Sprintf("n%d=%s", i+1, c.peers[i]))
	}
	c.list = strings.Join(items, ",")
	t.Cleanup(func() {
		for i := range c.procs {
			c.kill(i)
			if t.Failed() && c.procs[i] != nil {
				t.Logf("the last log of n%d:\n%s", i+1, tail(c.procs[i].log.String(), 3000))
			}
		}
	})
	return c
}

// logStore is how node i keeps its log: the nodes of a cluster do it in turns, so that
// every test is one of both.
func (c *cluster) logStore(i int) string {
	if *logStore != "" {
		return *logStore
	}
	return []string{"wal", "bolt"}[i%2]
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// freeAddr returns an address that is this cluster's.
func (c *cluster) freeAddr() string {
	c.t.Helper()
	addrs, err := c.ports.Addrs(1)
	if err != nil {
		c.t.Fatal(err)
	}
	return addrs[0]
}

func startCluster(t *testing.T, n int) *cluster {
	t.Helper()
	c := newCluster(t, n)
	c.startAll()
	c.ready()
	return c
}

func (c *cluster) start(i int) *process {
	c.t.Helper()
	args := append([]string{
		"serve", "--id", fmt.Sprintf("n%d", i+1), "--data-dir", c.dirs[i],
		"--peer-addr", c.peers[i], "--api-addr", c.apis[i], "--cluster", c.list,
	}, append(c.flags(i), "--log-store", c.logStore(i))...)
	p := &process{cmd: exec.Command(binary, args...), log: &logBuffer{}, exited: make(chan struct{})}
	if c.hangable {
		p.cmd = exec.Command(os.Args[0], fmt.Sprintf("n%d", i+1), c.dirs[i], c.peers[i], c.apis[i], c.list, c.logStore(i))
		p.cmd.Env = append(os.Environ(), nodeEnv+"=1")
	}
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	c.procs[i], c.all = p, append(c.all, p)
	return p
}

func (c *cluster) startAll() {
	c.t.Helper()
	for i := range c.procs {
		c.start(i)
	}
}

// kill ends node i with SIGKILL, if it runs, and waits until it is gone.
func (c *cluster) kill(i int) {
	p := c.procs[i]
	if p == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// killAll ends all nodes at the same moment.
func (c *cluster) killAll() {
	for _, p := range c.procs {
		_ = p.cmd.Process.Signal(syscall.SIGKILL)
	}
	for _, p := range c.procs {
		<-p.exited
	}
}

// ended waits until node i has ended by itself, and returns its exit code and log.
func (c *cluster) ended(i int) (code int, log string) {
	c.t.Helper()
	p := c.procs[i]
	select {
	case <-p.exited:
	case <-time.After(time.Minute):
		c.t.Fatalf("n%d goes on; its log:\n%s", i+1, tail(p.log.String(), 3000))
	}
	return p.cmd.ProcessState.ExitCode(), p.log.String()
}

func (c *cluster) dial(nodes ...int) *holder.Client {
	c.t.Helper()
	endpoints := c.apis
	if len(nodes) > 0 {
		endpoints = nil
		for _, i := range nodes {
			endpoints = append(endpoints, c.apis[i])
		}
	}
	client, err := holder.Dial(endpoints)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// ready waits until the cluster answers.
func (c *cluster) ready() {
	c.t.Helper()
	client := c.dial()
	c.eventually("the cluster answers", func(ctx context.Context) bool {
		_, err := client.Get(ctx, lease.GetRequest{Key: "probe"})
		return err == nil
	})
}

// agree waits until all nodes are healthy and have told the same digest at the same
// log index.
func (c *cluster) agree() {
	c.t.Helper()
	client := c.dial()
	c.eventually("all nodes agree on the state", func(ctx context.Context) bool {
		status, err := client.Status(ctx)
		if err != nil || len(status.Digests) != len(c.procs) {
			return false
		}
		var first string
		for id, digest := range status.Digests {
			if first == "" {
				first = digest
			}
			if digest != first {
				c.t.Fatalf("%s differs at index %d: %v", id, status.DigestIndex, status.Digests)
			}
		}
		return true
	})
}

// eventually polls until holds does, for a minute and a half at most.
func (c *cluster) eventually(what string, holds func(ctx context.Context) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, 10*time.Second)
		ok := holds(try)
		cancel()
		if ok {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	c.t.Fatalf("not in time: %s", what)
}

// load is what many clients do at once, and what they were told.
type load struct {
	t    *testing.T
	stop context.CancelFunc
	done sync.WaitGroup

	// granted gets a signal, never more than one pending, after each grant.
	granted chan struct{}

	mu    sync.Mutex
	acked map[string]lease.Record // the latest acknowledged grant of each key
}

// startLoad has workers acquire keys until it is stopped: most of them new ones for
// good, and one that they hand on.
func (c *cluster) startLoad(name string, workers int) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: c.t, stop: cancel, acked: map[string]lease.Record{}, granted: make(chan struct{}, 1)}
	client := c.dial()
	for w := range workers {
		l.done.Go(func() {
			owner := fmt.Sprintf("%s-%d", name, w)
			pace := time.NewTicker(2 * time.Millisecond) // leave some of the machine to the nodes
			defer pace.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				<-pace.C
				key := fmt.Sprintf("%s/%d/%d", name, w, n)
				if n%4 == 0 {
					key = fmt.Sprintf("%s/handed-on", name)
				}
				l.one(ctx, client, lease.AcquireRequest{Key: key, Owner: owner, TTL: time.Hour})
			}
		})
	}
	return l
}

func (l *load) one(ctx context.Context, client *holder.Client, req lease.AcquireRequest) {
	call, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answer, err := client.Acquire(call, req)
	_, held := errors.AsType[*lease.HeldError](err)
	_, lost := errors.AsType[*lease.LostError](err)
	switch {
	case err == nil:
		l.note(answer.Record)
		if strings.HasSuffix(req.Key, "handed-on") {
			_, _ = client.Release(call, lease.ReleaseRequest{Key: req.Key, Owner: req.Owner, Epoch: answer.Record.Epoch})
		}
	case !held && !lost && !errors.Is(err, lease.ErrOutcomeUnknown) && !errors.Is(err, lease.ErrUnavailable):
		l.t.Errorf("acquire %q: %v", req.Key, err)
	}
}

func (l *load) note(r lease.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Epoch > l.acked[r.Key].Epoch {
		l.acked[r.Key] = r
	}
	select {
	case l.granted <- struct{}{}:
	default:
	}
}

// waitFor waits until n keys have been granted.
func (l *load) waitFor(n int) {
	l.t.Helper()
	deadline := time.After(90 * time.Second)
	for {
		l.mu.Lock()
		have := len(l.acked)
		l.mu.Unlock()
		if have >= n {
			return
		}
		select {
		case <-l.granted:
		case <-deadline:
			l.t.Fatalf("%d grants in 90 s", have)
		}
	}
}

// end stops the load and returns the latest acknowledged grant of each key.
func (l *load) end() map[string]lease.Record {
	l.stop()
	l.done.Wait()
	return l.acked
}

// checkKept fails the test for each acknowledged grant that is not there.
func (c *cluster) checkKept(acked map[string]lease.Record) {
	c.t.Helper()
	client := c.dial()
	for key, want := range acked {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		answer, err := client.Get(ctx, lease.GetRequest{Key: key})
		cancel()
		got := answer.Record
		if err != nil || got.Epoch < want.Epoch || got.Epoch == want.Epoch && got.Owner != want.Owner {
			c.t.Errorf("%q was granted to %q at epoch %d, and is now %q at epoch %d, %v", key, want.Owner, want.Epoch, got.Owner, got.Epoch, err)
		}
	}
}
