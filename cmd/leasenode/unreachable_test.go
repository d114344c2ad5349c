package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// TestUnreachable holds what a user is told when nobody answers: what was asked for and
// where, what that means, why, and what to do.
func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	const why = "(connection refused); given up: no answer within 300ms; "
	remedy := "asked " + addr + `; see "leasenode status", and whether --endpoints are the nodes' client addresses (--api-addr), not those for other nodes (--peer-addr)` + "\n"
	for args, want := range map[string]string{
		"renew k --owner o --epoch 1": `renew "k" at ` + addr + ": unavailable: certainly not done, try again " + why + remedy,
		"acquire k --owner o":         `acquire "k" at ` + addr + ": unavailable: certainly not done, try again " + why + remedy,
		"get k":                       `get "k" at ` + addr + ": unavailable, try again " + why + remedy,
		"list":                        `list "" at ` + addr + ": unavailable, try again " + why + remedy,
		"watch":                       "watch all keys at " + addr + ": unavailable, try again (connection refused); given up: no node has begun it in time; " + remedy,
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), process{
			name: "leasenode", args: append(strings.Fields(args), "--endpoints", addr, "--timeout", "300ms"),
			stdout: &stdout, stderr: &stderr, dial: dialCluster,
		})
		check(t, args, outcome{code, stdout.String(), stderr.String()}, outcome{exitUnavailable, "", "leasenode: " + want})
	}
}

// TestNeverGranted holds what a user is told about a key that nobody has ever owned.
func TestNeverGranted(t *testing.T) {
	store, _ := stillStore()
	for _, command := range []string{"renew", "release", "forget"} {
		got := invocation{cluster: fakeCluster{Store: store}}.run(command, "k", "--owner", "o", "--epoch", "1")
		check(t, command, got, outcome{exitLost, "", `leasenode: "k" was never granted to anyone, so there is no lease of it: acquire it first, or look at how it is spelled` + "\n"})
	}
}

// TestNotYours holds what a user is told who names another owner or epoch than those of
// the lease: that it is held goes on.
func TestNotYours(t *testing.T) {
	for args, want := range map[string]string{
		"--owner a --epoch 99": `"k" is held by "a" at epoch 2; epoch 99 was never granted: look at --epoch`,
		"--owner b --epoch 2":  `"k" is held by "a" at epoch 2, and not by "b": look at --owner`,
		"--owner b --epoch 1":  `"k" is held by "a" at epoch 2; the lease of epoch 1 is over: stop, and acquire again`,
	} {
		for _, command := range []string{"renew", "release", "forget"} {
			store, _ := stillStore()
			i := invocation{cluster: fakeCluster{Store: store}}
			i.run("acquire", "k", "--owner", "b")
			i.run("release", "k", "--owner", "b", "--epoch", "1")
			i.run("acquire", "k", "--owner", "a")
			check(t, command+" "+args, i.run(append([]string{command, "k"}, strings.Fields(args)...)...), outcome{exitLost, "", "leasenode: " + want + "\n"})
		}
	}
}

// TestRemedy holds that who has named the endpoints is not told to start another cluster.
func TestRemedy(t *testing.T) {
	for _, c := range []struct {
		args string
		env  []string
		dev  bool
	}{
		{"get k", nil, true},
		{"status", nil, true},
		{"get k --endpoints 127.0.0.1:7101", nil, false},
		{"status --endpoints 127.0.0.1:7101", nil, false},
		{"get k", []string{"LEASENODE_ENDPOINTS=127.0.0.1:7101"}, false},
	} {
		store := leasetest.NewFaulty(leasetest.NewMemory(lease.NewSystemClock()))
		store.Cut()
		got := invocation{env: c.env, cluster: fakeCluster{Store: store, statusErr: lease.ErrUnavailable}}.run(strings.Fields(c.args)...)
		if got.code != exitUnavailable || strings.Contains(got.stderr, "leasenode dev") != c.dev || strings.Contains(got.stderr, "--peer-addr") == c.dev {
			t.Errorf("%s %v: %+v", c.args, c.env, got)
		}
	}
}

// TestDevOnATakenPortLeavesNothing holds that a dev that cannot run makes no folder.
func TestDevOnATakenPortLeavesNothing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	dir := filepath.Join(t.TempDir(), "cluster")
	got := invocation{}.run("dev", "--nodes", "1", "--data-dir", dir, "--api-port", port, "--peer-port", "1")
	if got.code != exitFailed || !strings.Contains(got.stderr, "port "+port+" cannot be used") {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it has made the folder: %v", err)
	}
}
