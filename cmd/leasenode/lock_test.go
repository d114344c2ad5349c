package main

import (
	"strings"
	"testing"

	"github.com/leasenode/leasenode/lease"
)

// TestLockRefuses is what lock says to whom it runs nothing for, and the exit codes.
func TestLockRefuses(t *testing.T) {
	store, _ := stillStore()
	if _, err := store.Acquire(t.Context(), lease.AcquireRequest{Key: "taken", Owner: "other", TTL: defaultTTL}); err != nil {
		t.Fatal(err)
	}
	file := t.TempDir()
	cases := []struct {
		args string
		code int
		want string // on standard error
	}{
		{"k true", exitUsage, "after -- a COMMAND"},
		{"k --", exitUsage, "after -- a COMMAND"},
		{"-- k true", exitUsage, "after -- a COMMAND"},
		{"k extra -- true", exitUsage, "after -- a COMMAND"},
		{"k --wait -1s -- true", exitUsage, "--wait is -1s"},
		{"k --ttl 1ms -- true", exitUsage, "ttl"},
		{"k --owner=\u00a0 -- true", exitUsage, "owner"},
		{"k -- no-such-command", exitNotFound, `cannot run "no-such-command"`},
		{"k -- /no/such/command", exitNotFound, `cannot run "/no/such/command"`},
		{"k -- " + file, exitNotExecutable, "cannot run"},
		{"taken --wait 0s -- true", exitHeld, `held by "other" at epoch 1`},
		{"-- -taken -- no-such-command", exitNotFound, `cannot run "no-such-command"`},
		{"taken --wait 600ms -- true", exitHeld, `waiting for "taken", held by "other" at epoch 1, for another 10s unless renewed`},
	}
	for _, c := range cases {
		t.Run(c.args, func(t *testing.T) {
			args := append([]string{"lock", "-o", "json"}, strings.Split(c.args, " ")...)
			got := invocation{cluster: fakeCluster{Store: store}}.run(args...)
			check(t, "code", got.code, c.code)
			if !strings.Contains(got.stderr, c.want) {
				t.Errorf("no %s in %s", c.want, got.stderr)
			}
			if !strings.HasPrefix(got.stdout, `{"error":{"reason":"`) {
				t.Errorf("the error is not on standard output: %s", got.stdout)
			}
			if named := strings.Contains(got.stdout, `"owner":"other"`); named != (c.code == exitHeld) {
				t.Errorf("the holder in the error: %v in %s", named, got.stdout)
			}
		})
	}
}

func TestLockWithoutCluster(t *testing.T) {
	got := launch(t, "lock", "k", "--endpoints", "127.0.0.1:1", "--timeout", "200ms", "--wait", "1s", "--", "true").finish(t)
	check(t, "code", got.code, exitUnavailable)
	if !strings.Contains(got.stderr, "the cluster has not answered for 200ms") {
		t.Errorf("%s", got.stderr)
	}
}
