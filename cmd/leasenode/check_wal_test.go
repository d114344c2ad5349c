package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// inWAL returns a copy of the cluster whose logs are in files that are appended to.
func (s stopped) inWAL(t *testing.T) string {
	t.Helper()
	dir := copyOf(t, s.dir)
	for _, id := range []string{"n1", "n2", "n3"} {
		fail := func(err error) { t.Error(err) }
		stores, err := disk.Open(disk.Config{
			Dir: filepath.Join(dir, id), Begun: true, Log: disk.LogWAL, Logger: hclog.NewNullLogger(), Registry: prometheus.NewRegistry(),
			OnFailure: fail, End: fail, Leads: func() bool { return false },
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := stores.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// checkWAL holds that check says of logs in files what it says of those in raft.db.
func (s stopped) checkWAL(t *testing.T) {
	dir := s.inWAL(t)
	_, whole := checked(t, s.dir)
	got, result := checked(t, dir)
	check(t, "code", got.code, exitDone)
	for i, n := range result.Nodes {
		was := whole.Nodes[i]
		if *n.Log != *was.Log || *n.Vote != *was.Vote || n.State == nil || n.State.Digest != was.State.Digest {
			t.Errorf("%s: %+v, %+v, %+v; it was %+v, %+v, %+v", n.ID, n.Log, n.Vote, n.State, was.Log, was.Vote, was.State)
		}
	}
	segment := filepath.Join(disk.WALDir, "00000001.seg")
	for name, c := range map[string]struct {
		file   string
		change func([]byte) []byte
		want   problemJSON
	}{
		"an entry": {segment, func(b []byte) []byte { return bytes.Replace(b, []byte("orders/3"), []byte("orders/X"), 1) }, problemJSON{Kind: problemDamaged, Part: partLog, File: segment, Message: "put back"}},
		"the end":  {segment, func(b []byte) []byte { return b[:len(b)/2] }, problemJSON{Kind: problemDamaged, Part: partLog, File: segment, Message: "put back"}},
		"the mark": {filepath.Join(disk.WALDir, "mark"), func([]byte) []byte { return nil }, problemJSON{Kind: problemDamaged, Part: partLog, File: "mark", Message: "put back"}},
	} {
		t.Run(name, func(t *testing.T) {
			damaged := copyOf(t, filepath.Join(dir, "n1"))
			alter(t, filepath.Join(damaged, c.file), c.change)
			got, result := checked(t, damaged)
			check(t, "code", got.code, node.ExitDamaged)
			expectProblem(t, result, c.want)
		})
	}
	t.Run("no log", func(t *testing.T) {
		damaged := copyOf(t, filepath.Join(dir, "n1"))
		remove(t, filepath.Join(damaged, disk.WALDir))
		got, result := checked(t, damaged)
		check(t, "code", got.code, node.ExitDamaged)
		expectProblem(t, result, problemJSON{Kind: problemDamaged, Part: partLog, Message: "missing"})
	})
}
