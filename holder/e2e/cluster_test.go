package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/portblock"
	"github.com/leasenode/leasenode/internal/portblock/porttest"
	"github.com/leasenode/leasenode/lease"
)

// patience is how long anything may take that real processes do on a busy machine.
const patience = 90 * time.Second

// cluster is a running "leasenode dev".
type cluster struct {
	t         *testing.T
	dir       string
	endpoints []string
	client    *holder.Client
}

const nodes = 3

// startCluster runs a cluster of three nodes and returns when it answers. It is stopped
// at the end of the test.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, dir: t.TempDir()}
	api, peer := porttest.Row(t, nodes), porttest.Row(t, nodes)
	for k := range nodes {
		c.endpoints = append(c.endpoints, portblock.Addr(api+k))
	}
	dev := exec.Command(leasenode, "dev", "--nodes", strconv.Itoa(nodes), "--data-dir", c.dir, "--api-port", strconv.Itoa(api), "--peer-port", strconv.Itoa(peer))
	var said bytes.Buffer
	dev.Stdout, dev.Stderr = &said, &said
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		force := time.AfterFunc(patience, func() { _ = dev.Process.Kill() })
		defer force.Stop()
		_ = dev.Wait()
		if t.Failed() {
			t.Logf("dev: %s", &said)
		}
	})
	c.client = c.dial()
	c.eventually("the cluster answers", func(ctx context.Context) bool {
		_, err := c.client.Get(ctx, lease.GetRequest{Key: "probe"})
		return err == nil
	})
	return c
}

// dial returns a client, closed at the end of the test.
func (c *cluster) dial() *holder.Client {
	c.t.Helper()
	client, err := holder.Dial(c.endpoints)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = client.Close() })
	return client
}

// holder returns a holder with that client, closed at the end of the test.
func (c *cluster) holder(client *holder.Client, config holder.Config) *holder.Holder {
	c.t.Helper()
	h, err := holder.New(client, config)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(h.Close)
	return h
}

// eventually polls until holds does.
func (c *cluster) eventually(what string, holds func(ctx context.Context) bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(c.t.Context(), 5*time.Second)
		ok := holds(ctx)
		cancel()
		if ok {
			return
		}
	}
	c.t.Fatalf("not within %v: %s", patience, what)
}

func (c *cluster) within() context.Context {
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	c.t.Cleanup(cancel)
	return ctx
}

// history returns the grants of key: "owner:epoch owner:epoch".
func (c *cluster) history(key string) string {
	c.t.Helper()
	page, err := c.client.History(c.within(), lease.HistoryRequest{Key: key, PageSize: lease.MaxPageSize})
	if err != nil {
		c.t.Fatal(err)
	}
	var grants []string
	for _, entry := range page.Entries {
		if entry.Op == lease.OpAcquire {
			grants = append(grants, fmt.Sprintf("%s:%d", entry.Owner, entry.Epoch))
		}
	}
	return strings.Join(grants, " ")
}

// leader waits for a leader that answers, and returns its id.
func (c *cluster) leader() string {
	c.t.Helper()
	var leader string
	c.eventually("a leader that answers", func(ctx context.Context) bool {
		if _, err := c.client.Get(ctx, lease.GetRequest{Key: "probe"}); err != nil {
			return false
		}
		status, err := c.client.Status(ctx)
		leader = status.Leader
		return err == nil && leader != ""
	})
	return leader
}

// signal sends s to the process of node id.
func (c *cluster) signal(id string, s syscall.Signal) {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join(c.dir, id, "node.pid"))
	if err != nil {
		c.t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		c.t.Fatalf("node.pid of %s: %q", id, text)
	}
	if err := syscall.Kill(pid, s); err != nil {
		c.t.Fatalf("signal %s: %v", id, err)
	}
}

// signalAll sends s to all nodes.
func (c *cluster) signalAll(s syscall.Signal) {
	c.t.Helper()
	for k := range nodes {
		c.signal(fmt.Sprintf("n%d", k+1), s)
	}
}

// restart brings back a node that was killed.
func (c *cluster) restart(id string) {
	c.t.Helper()
	if out, err := exec.CommandContext(c.within(), leasenode, "dev", "restart", id, "--data-dir", c.dir).CombinedOutput(); err != nil {
		c.t.Fatalf("restart %s: %v: %s", id, err, out)
	}
}
