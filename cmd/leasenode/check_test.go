package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gofrs/flock"
	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// checked runs check, holds that it changes nothing and leaves nothing behind, and
// decodes what it prints.
func checked(t *testing.T, dirs ...string) (outcome, checkJSON) {
	t.Helper()
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	var before []map[string]string
	for _, dir := range dirs {
		before = append(before, contents(t, dir))
	}
	got := invocation{}.run(append([]string{"check", "-o", "json"}, dirs...)...)
	for i, dir := range dirs {
		after := contents(t, dir)
		for path, was := range before[i] {
			if after[path] != was {
				t.Errorf("%s was changed", path)
			}
		}
		if len(after) != len(before[i]) {
			t.Errorf("%s has %d files, and had %d", dir, len(after), len(before[i]))
		}
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	var result checkJSON
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil {
		t.Fatalf("%v in %+v", err, got)
	}
	return got, result
}

// alter changes a file of a copy of dir and returns the copy.
func alter(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func flip(r *rand.Rand) func([]byte) []byte {
	return func(b []byte) []byte {
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		return b
	}
}

// expectProblem holds that there is one of a kind in a part that names the file.
func expectProblem(t *testing.T, result checkJSON, want problemJSON) {
	t.Helper()
	for _, p := range result.Problems {
		if p.Kind == want.Kind && p.Part == want.Part && strings.HasSuffix(p.File, want.File) && strings.Contains(p.Message, want.Message) {
			return
		}
	}
	t.Errorf("%+v is not among %+v", want, result.Problems)
}

func TestCheck(t *testing.T) {
	s := stoppedCluster(t)
	t.Run("a whole cluster", func(t *testing.T) { s.checkWhole(t) })
	t.Run("its digest is the cluster's", func(t *testing.T) { s.checkDigest(t) })
	t.Run("damage", func(t *testing.T) { s.checkDamage(t) })
	t.Run("bits", func(t *testing.T) { s.checkBits(t) })
	t.Run("logs in files", func(t *testing.T) { s.checkWAL(t) })
	t.Run("content", func(t *testing.T) { s.checkContent(t) })
	t.Run("several nodes", func(t *testing.T) { s.checkSeveral(t) })
	t.Run("in use", func(t *testing.T) { s.checkInUse(t) })
	t.Run("tables", func(t *testing.T) { s.checkTables(t) })
}

func (s stopped) checkWhole(t *testing.T) {
	got, result := checked(t, s.dir)
	if got.code != exitDone || !result.OK || len(result.Problems) > 0 || len(result.Nodes) != 3 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	for k, n := range result.Nodes {
		if n.ID != fmt.Sprintf("n%d", k+1) || n.Identity.ClusterID != s.status.ClusterID || n.Identity.Starts != 1 || len(n.Identity.Founders) != 3 || len(n.Identity.Seen) != 2 {
			t.Errorf("identity: %+v, %+v", n, n.Identity)
		}
		if n.Vote.Term < s.status.Term || !n.Log.OK || n.Log.First < 2 || n.Log.RightUpTo != n.Log.Last {
			t.Errorf("%+v, %+v", n.Vote, n.Log)
		}
		if len(n.Snapshots) != 2 || !n.Snapshots[0].Usable || n.Snapshots[0].Index <= n.Snapshots[1].Index || n.Snapshots[0].Bytes == 0 {
			t.Errorf("%+v", n.Snapshots)
		}
		st := n.State
		if st == nil || !st.Complete || st.Keys != uint64(len(s.keys)) || st.Held != uint64(len(s.held)) || st.HighestEpoch < 2 || st.UpTo != n.Log.Last || st.SnapshotIndex != n.Snapshots[0].Index {
			t.Errorf("%+v, want %d keys, %d held", st, len(s.keys), len(s.held))
		}
	}
	c := result.Comparison
	if c == nil || len(c.Digests) != 3 || len(c.Differ) > 0 || c.Index < s.status.DigestIndex || c.Digests["n1"] != c.Digests["n3"] || c.Digests["n1"] == "" {
		t.Errorf("%+v", c)
	}
}

// checkDigest holds that replaying comes to what the cluster itself said.
func (s stopped) checkDigest(t *testing.T) {
	n, err := inspectNode(t.Context(), filepath.Join(s.dir, "n1"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { check(t, "close", n.close(), nil) }()
	for _, limit := range []uint64{s.status.DigestIndex, n.report.Snapshots[1].Index} { // from the newest snapshot, and from the one before
		r, err := n.beginState(limit)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.compareAt(t.Context(), s.status.DigestIndex); err != nil {
			t.Fatal(err)
		}
		check(t, "digest", n.compared, s.status.Digests["n1"])
		check(t, "index", n.comparedAt, s.status.DigestIndex)
		check(t, "close", r.close(), nil)
	}
	// raft keeps no-ops from the state machine.
	dir := copyOf(t, n.Dir)
	s.tamper(t, dir, func(stores *disk.Stores, last raft.Log) error {
		return stores.Logs.StoreLog(&raft.Log{Index: last.Index + 1, Term: last.Term, Type: raft.LogNoop})
	})
	_, before := checked(t, n.Dir)
	_, after := checked(t, dir)
	check(t, "up to", after.Nodes[0].State.UpTo, before.Nodes[0].State.UpTo+1)
	check(t, "digest after a no-op", after.Nodes[0].State.Digest, before.Nodes[0].State.Digest)
}

func (s stopped) checkInUse(t *testing.T) {
	lock := flock.New(filepath.Join(s.dir, "n2", "lock"))
	if taken, err := lock.TryLock(); err != nil || !taken {
		t.Fatalf("%t, %v", taken, err)
	}
	got, _ := checked(t, s.dir)
	if got.code != exitFailed || !strings.Contains(got.stderr, "a node is running in "+filepath.Join(s.dir, "n2")) {
		t.Errorf("%+v", got)
	}
	// The others were let go again.
	first := flock.New(filepath.Join(s.dir, "n1", "lock"))
	taken, err := first.TryLock()
	if err != nil || !taken {
		t.Errorf("%t, %v", taken, err)
	}
	if err := errors.Join(lock.Close(), first.Close()); err != nil {
		t.Error(err)
	}
}

func (s stopped) checkTables(t *testing.T) {
	dir := copyOf(t, s.dir)
	whole := invocation{}.run("check", dir)
	if whole.code != exitDone || !strings.HasSuffix(whole.stdout, "all is well\n") || !strings.Contains(whole.stdout, "the latest that all have: the same") {
		t.Errorf("%+v", whole)
	}
	t.Logf("\n%s", whole.stdout)
	alter(t, filepath.Join(dir, "n3", disk.LogFile), func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("orders/3"), []byte("orders/X")) })
	got := invocation{}.run("check", dir)
	if got.code != node.ExitDamaged || !strings.Contains(got.stdout, "\nDAMAGED: ") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
	t.Logf("\n%s", got.stdout)
}

func TestCheckOfWhatIsNoNode(t *testing.T) {
	empty, other := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, other} {
		got, _ := checked(t, dir)
		if got.code != exitFailed || !strings.Contains(got.stderr, dir+" is no data directory") {
			t.Errorf("%+v", got)
		}
	}
	check(t, "missing", invocation{}.run("check", filepath.Join(empty, "nowhere")).code, exitFailed)
	check(t, "a file", invocation{}.run("check", filepath.Join(other, "file")).code, exitFailed)
	check(t, "no argument", invocation{}.run("check").code, exitUsage)
}

// TestCheckOfDev checks the nodes of a real dev: in use while it runs, and well once it
// is stopped.
func TestCheckOfDev(t *testing.T) {
	d := startDev(t, 1)
	var answer recordJSON
	d.must(t, &answer, "acquire", "k", "--owner", "o", "--ttl", "1h")
	running := launch(t, "check", d.dir).finish(t)
	if running.code != exitFailed || !strings.Contains(running.stderr, "a node is running in "+filepath.Join(d.dir, "n1")) {
		t.Errorf("%+v", running)
	}
	d.kill(t, "n1")
	d.terminate(t)
	d.finish(t)
	got, result := checked(t, d.dir)
	if got.code != exitDone || len(result.Nodes) != 1 || result.Nodes[0].State.Keys != 1 || result.Nodes[0].State.Held != 1 || result.Comparison != nil {
		t.Errorf("%+v", got)
	}
}
