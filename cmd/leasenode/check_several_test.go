package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

func (s stopped) checkSeveral(t *testing.T) {
	t.Run("one is gone", func(t *testing.T) {
		dir := copyOf(t, s.dir)
		if err := os.WriteFile(filepath.Join(dir, layoutFile), []byte(`{"nodes":3,"peer_port":7101}`), 0o600); err != nil {
			t.Fatal(err)
		}
		remove(t, filepath.Join(dir, "n2"))
		got, result := checked(t, dir)
		check(t, "code", got.code, node.ExitDamaged)
		expectProblem(t, result, problemJSON{Kind: problemDamaged, Part: partIdentity, File: "n2/identity.json", Message: "nothing of node n2"})
		check(t, "compared", len(result.Comparison.Digests), 2)
	})
	t.Run("of two clusters", func(t *testing.T) {
		other := t.TempDir()
		stranger, err := raftnet.OpenIdentity(other, "n9")
		if err == nil {
			err = stranger.SetTable(raftnet.Table{{ID: "n9", Addr: "h:1", Incarnation: stranger.Incarnation}})
		}
		if err != nil {
			t.Fatal(err)
		}
		got, result := checked(t, other)
		if got.code != exitDone || result.Nodes[0].Log != nil || result.Nodes[0].Vote != nil || result.Nodes[0].State != nil {
			t.Errorf("one that is about to begin: %+v", got)
		}
		got, result = checked(t, filepath.Join(s.dir, "n1"), other)
		check(t, "code", got.code, node.ExitDamaged)
		expectProblem(t, result, problemJSON{Kind: problemDiffers, Part: partIdentity, Message: "of several"})
	})
	t.Run("one state differs", func(t *testing.T) {
		a, b, c := s.withEntry(t, 0, acquireBy("a")), s.withEntry(t, 0, acquireBy("b")), s.withEntry(t, 0, acquireBy("b"))
		got, result := checked(t, a, b, c)
		check(t, "code", got.code, node.ExitDamaged)
		check(t, "differ", fmt.Sprint(result.Comparison.Differ), fmt.Sprint([]string{a}))
		expectProblem(t, result, problemJSON{Kind: problemDiffers, Part: partState, Message: a + " at log entry"})
		_, result = checked(t, a, b)
		check(t, "one against one", len(result.Comparison.Differ), 2)
	})
	t.Run("other entries that were never committed", func(t *testing.T) {
		a, b := s.withEntry(t, 1, acquireBy("a")), s.withEntry(t, 2, acquireBy("b"))
		got, result := checked(t, a, b)
		check(t, "code", got.code, exitDone)
		check(t, "compared at", result.Comparison.Index, result.Nodes[0].Log.Last-1)
	})
	t.Run("one that is behind", func(t *testing.T) { s.checkBehind(t) })
	t.Run("an older copy", func(t *testing.T) {
		nodes := s.inspectAll(t)
		nodes[0].identity.Starts = 0
		compareIdentities(nodes)
		expectProblem(t, checkJSON{Problems: nodes[0].problems}, problemJSON{Kind: problemDiffers, Part: partIdentity, Message: "an older copy"})
		check(t, "others", len(nodes[1].problems)+len(nodes[2].problems), 0)
	})
}

// withEntry returns a copy of n1 with one more entry, of a later term by so many.
func (s stopped) withEntry(t *testing.T, later uint64, encode func(term uint64) []byte) string {
	t.Helper()
	dir := copyOf(t, filepath.Join(s.dir, "n1"))
	s.tamper(t, dir, func(stores *disk.Stores, last raft.Log) error {
		term := last.Term + later
		return stores.Logs.StoreLog(&raft.Log{Index: last.Index + 1, Term: term, Type: raft.LogCommand, Data: encode(term)})
	})
	return dir
}

func acquireBy(owner string) func(term uint64) []byte {
	return func(term uint64) []byte {
		mutation := lease.AcquireRequest{Key: "another", Owner: owner, TTL: time.Minute}.Mutation()
		return fsm.EncodeBatch(fsm.Stamp{Term: term, Wall: time.Unix(1, 0)}, [][]byte{fsm.EncodeMutation(mutation)})
	}
}

// checkBehind shortens the log of the node whose newest snapshot is the oldest to what
// is in that: the others are compared with it there, with an older snapshot if they need
// one, or it is left out if they cannot go back so far.
func (s stopped) checkBehind(t *testing.T) {
	dir := copyOf(t, s.dir)
	_, whole := checked(t, dir)
	behind := slices.MinFunc(whole.Nodes, func(a, b nodeJSON) int { return cmp.Compare(a.Snapshots[0].Index, b.Snapshots[0].Index) })
	index, compared := behind.Snapshots[0].Index, 3
	for _, n := range whole.Nodes {
		if n.Snapshots[0].Index != index && n.Snapshots[1].Index > index {
			compared = 2
		}
	}
	s.tamper(t, behind.Dir, func(stores *disk.Stores, last raft.Log) error { return stores.Logs.DeleteRange(index+1, last.Index) })
	got, result := checked(t, dir)
	check(t, "code", got.code, exitDone)
	check(t, "compared", len(result.Comparison.Digests), compared)
	check(t, "left out", len(result.Comparison.NotCompared), 3-compared)
	if compared == 3 {
		check(t, "index", result.Comparison.Index, index)
	}
}

// inspectAll inspects all nodes, to be looked at and not to be written to.
func (s stopped) inspectAll(t *testing.T) []*checkedNode {
	t.Helper()
	var nodes []*checkedNode
	for k := range 3 {
		n, err := inspectNode(t.Context(), filepath.Join(s.dir, fmt.Sprintf("n%d", k+1)), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { check(t, "close", n.close(), nil) })
		nodes = append(nodes, n)
	}
	return nodes
}
