package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet"
)

// foundedWith makes directories of a founded cluster that has no log yet.
func foundedWith(t *testing.T, ids ...string) (dirs []string) {
	t.Helper()
	var table raftnet.Table
	var identities []*raftnet.Identity
	for _, id := range ids {
		dir := t.TempDir()
		identity, err := raftnet.OpenIdentity(dir, id)
		if err != nil {
			t.Fatal(err)
		}
		dirs, identities = append(dirs, dir), append(identities, identity)
		table = append(table, raftnet.Member{ID: id, Addr: id + ":1", Incarnation: identity.Incarnation})
	}
	for _, identity := range identities {
		if err := identity.SetTable(table); err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

func newDir(t *testing.T, id string) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := raftnet.OpenIdentity(dir, id); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCheckOfWipedDirectory holds that a new directory under the name of a founder is
// found out by what the others know.
func TestCheckOfWipedDirectory(t *testing.T) {
	dirs := foundedWith(t, "n1", "n2", "n3")
	wiped := newDir(t, "n2")
	got, result := checked(t, dirs[0], wiped)
	check(t, "code", got.code, node.ExitDamaged)
	expectProblem(t, result, problemJSON{
		Kind: problemDiffers, Part: partIdentity, File: filepath.Join(wiped, raftnet.IdentityFile), Message: "do not start it; put that one back",
	})
	check(t, "problems", len(result.Problems), 1)
	got, result = checked(t, wiped, dirs[0], dirs[2])
	check(t, "code with two others", got.code, node.ExitDamaged)
	check(t, "problems with two others", len(result.Problems), 1)
}

// TestCheckComparesNothing holds that nobody takes "there was nothing to compare" for
// "they are the same".
func TestCheckComparesNothing(t *testing.T) {
	dirs := foundedWith(t, "n1", "n2")
	for _, args := range [][]string{dirs, {newDir(t, "a"), newDir(t, "b")}, {dirs[0], newDir(t, "other")}} {
		got := invocation{}.run(append([]string{"check"}, args...)...)
		check(t, "code", got.code, exitDone)
		if !strings.HasSuffix(got.stdout, "by itself is well, but nothing could be compared\n") || strings.Contains(got.stdout, "all is well") {
			t.Error(got.stdout)
		}
	}
	check(t, "one alone", strings.HasSuffix(invocation{}.run("check", dirs[0]).stdout, "all is well\n"), true)
}
