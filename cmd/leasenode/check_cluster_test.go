package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// stopped is the folder of a cluster that has run, and what it said of itself.
type stopped struct {
	dir    string
	status holder.Status // shortly before the end, when all had applied the same
	// keys are the records that were answered last, and held those that are held.
	keys map[string]lease.Record
	held map[string]bool
}

// stoppedCluster runs three real nodes in this process until each has two snapshots and
// a log that was shortened, and stops them.
func stoppedCluster(t *testing.T) stopped {
	t.Helper()
	s := stopped{dir: t.TempDir(), keys: map[string]lease.Record{}, held: map[string]bool{}}
	listeners, peers, apis := map[string]net.Listener{}, []node.Peer{}, []string{}
	reserve := func() string {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[ln.Addr().String()] = ln
		return ln.Addr().String()
	}
	for k := range 3 {
		peers, apis = append(peers, node.Peer{ID: fmt.Sprintf("n%d", k+1), Addr: reserve()}), append(apis, reserve())
	}
	nodes := make([]*node.Node, len(peers))
	var opened sync.WaitGroup
	for k, p := range peers {
		parts := node.SystemParts(hclog.NewNullLogger())
		parts.Listen = func(addr string) (net.Listener, error) { return listeners[addr], nil }
		parts.Tuning.SnapshotEntries, parts.Tuning.SnapshotInterval, parts.Tuning.TrailingEntries = 60, 20*time.Millisecond, 100
		opened.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var err error
			nodes[k], err = node.Open(ctx, node.Config{ID: p.ID, DataDir: filepath.Join(s.dir, p.ID), PeerAddr: p.Addr, APIAddr: apis[k], Cluster: peers}, parts)
			if err != nil {
				t.Error(err)
			}
		})
	}
	opened.Wait()
	if t.Failed() {
		t.FailNow()
	}
	s.fill(t, apis)
	for _, n := range nodes {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	return s
}

// fill has the cluster do something of everything until it has snapshots enough.
func (s *stopped) fill(t *testing.T, apis []string) {
	t.Helper()
	client, err := holder.Dial(apis)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := 0; i < 250 || !s.shortened(t); i++ {
		key := fmt.Sprintf("orders/%d", i%40)
		answer, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "worker", TTL: time.Hour})
		if lease.CodeOf(err) == lease.CodeHeld {
			answer, err = client.Release(ctx, lease.ReleaseRequest{Key: key, Owner: "worker", Epoch: s.keys[key].Epoch})
		}
		if err != nil {
			t.Fatal(err)
		}
		s.keys[key] = answer.Record
		if s.held[key] = true; answer.Remaining == 0 {
			delete(s.held, key)
		}
	}
	eventually(t, "the nodes agree", func() bool {
		s.status, err = client.Status(ctx)
		for _, m := range s.status.Members {
			if m.AppliedIndex != s.status.DigestIndex {
				return false
			}
		}
		return err == nil && len(s.status.Digests) == 3
	})
}

// shortened reports whether each node has two snapshots and not the beginning of its log.
func (s *stopped) shortened(t *testing.T) bool {
	for k := range 3 {
		names, err := filepath.Glob(filepath.Join(s.dir, fmt.Sprintf("n%d", k+1), snapshotsDir, "*-*-*", "meta.sum"))
		if err != nil {
			t.Fatal(err)
		}
		if len(names) < 2 {
			return false
		}
	}
	return true
}

// copyOf returns a copy of a folder.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), filepath.Base(dir))
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// contents returns every file and folder in dir with its bytes, mode and time.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		found[path] = info.ModTime().Format(time.RFC3339Nano) + info.Mode().String()
		if d.Type().IsRegular() {
			content, err := os.ReadFile(path)
			found[path] += string(content)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// tamper writes to the log and the snapshots in dir.
func (s stopped) tamper(t *testing.T, dir string, change func(stores *disk.Stores, last raft.Log) error) {
	t.Helper()
	fail := func(err error) { t.Error(err) }
	stores, err := disk.Open(disk.Config{
		Dir: dir, Begun: true, Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
		OnFailure: fail, End: fail, Leads: func() bool { return false },
	})
	if err != nil {
		t.Fatal(err)
	}
	var last raft.Log
	index, err := stores.Logs.LastIndex()
	if err == nil {
		err = stores.Logs.GetLog(index, &last)
	}
	if err == nil {
		err = change(stores, last)
	}
	if err := errors.Join(err, stores.Close()); err != nil {
		t.Fatal(err)
	}
}
