package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// TestCommandLineMessages holds what a user is told about a command line that is wrong.
func TestCommandLineMessages(t *testing.T) {
	for args, want := range map[string]string{
		"get":                           `"leasenode get" needs a KEY (see "leasenode get --help")`,
		"renew a b --owner o --epoch 1": `"leasenode renew" takes one KEY, and was given 2 (see "leasenode renew --help")`,
		"list a b":                      `"leasenode list" takes one PREFIX, and was given 2 (see "leasenode list --help")`,
		"check":                         `"leasenode check" needs a DIR (see "leasenode check --help")`,
		"dev restart":                   `"leasenode dev restart" needs a NODE (see "leasenode dev restart --help")`,
		"status n1":                     `"leasenode status" takes no arguments, and was given "n1" (see "leasenode status --help")`,
		"acquire k":                     `needs --owner (see "leasenode acquire --help")`,
		"renew k":                       `needs --epoch and --owner (see "leasenode renew --help")`,
		"acquier k":                     `unknown command "acquier" for "leasenode"; did you mean "acquire"? (see "leasenode --help")`,
		"acquir k":                      `unknown command "acquir" for "leasenode"; did you mean "acquire"? (see "leasenode --help")`,
		"xyzzy":                         `unknown command "xyzzy" for "leasenode" (see "leasenode --help")`,
		"dev restrat n1":                `unknown command "restrat" for "leasenode dev"; did you mean "restart"? (see "leasenode dev --help")`,
		"dev xyzzy":                     `unknown command "xyzzy" for "leasenode dev" (see "leasenode dev --help")`,
		"acquire k --ownr o":            `unknown flag: --ownr; did you mean "--owner"? (see "leasenode acquire --help")`,
		"renew k --epcoh 1":             `unknown flag: --epcoh; did you mean "--epoch"? (see "leasenode renew --help")`,
		"list --endpoint h:1":           `unknown flag: --endpoint; did you mean "--endpoints"? (see "leasenode list --help")`,
		"acquire k -ttl 1m":             `unknown shorthand flag: 't' in -ttl; did you mean "--ttl"? (see "leasenode acquire --help")`,
		"acquire k --xyzzy":             `unknown flag: --xyzzy (see "leasenode acquire --help")`,
		"acquire k -x":                  `unknown shorthand flag: 'x' in -x (see "leasenode acquire --help")`,
		"bench --duration 1s --count 1": `--duration and --count are both given: an operation is measured for the one or the other (see "leasenode bench --help")`,
	} {
		got := invocation{cluster: fakeCluster{}}.run(strings.Fields(args)...)
		check(t, args, got, outcome{exitUsage, "", "leasenode: " + want + "\n"})
	}
}

func TestVersionFlag(t *testing.T) {
	check(t, "--version", invocation{}.run("--version"), invocation{}.run("version"))
}

func TestHeldNamesWait(t *testing.T) {
	store, _ := stillStore()
	i := invocation{cluster: fakeCluster{Store: store}}
	i.run("acquire", "k", "--owner", "o", "--ttl", "2h")
	if got := i.run("acquire", "k", "--owner", "p"); got.code != exitHeld || !strings.Contains(got.stderr, "--wait") {
		t.Errorf("%+v", got)
	}
	if got := i.run("list", "x", "--held"); got.stdout != "no such key is held now\n" {
		t.Error(got.stdout)
	}
}

func TestSuggestedTTL(t *testing.T) {
	store, _ := stillStore()
	got := invocation{cluster: fakeCluster{Store: store}}.run("acquire", "k", "--owner", "o", "--ttl", "90m")
	if !strings.Contains(got.stdout, "--ttl 1h30m\n") {
		t.Error(got.stdout)
	}
}

// TestUnavailableReads holds that a read is not said to be "certainly not done", and
// that a failing status does not send its user to status.
func TestUnavailableReads(t *testing.T) {
	store, _ := stillStore()
	faulty := leasetest.NewFaulty(store)
	for _, op := range []leasetest.Method{leasetest.Get, leasetest.List, leasetest.History} {
		faulty.FailAll(op, leasetest.Fault{Err: errors.Join(lease.ErrUnavailable, context.DeadlineExceeded)})
	}
	i := invocation{cluster: fakeCluster{Store: faulty, statusErr: lease.ErrUnavailable}}
	for _, command := range []string{"get k", "list", "history", "status"} {
		got := i.run(strings.Fields(command)...)
		check(t, command, got.code, exitUnavailable)
		if strings.Contains(got.stderr, "certainly") || !strings.Contains(got.stderr, "unavailable") {
			t.Error(got.stderr)
		}
		check(t, command+" names status", strings.Contains(got.stderr, `see "leasenode status"`), command != "status")
	}
}

func TestHistoryIsInUTC(t *testing.T) {
	store, _ := stillStore()
	local := time.Local
	time.Local = time.FixedZone("elsewhere", -5*3600)
	defer func() { time.Local = local }()
	i := invocation{cluster: fakeCluster{Store: store}}
	i.run("acquire", "k", "--owner", "o")
	got := i.run("history").stdout
	if !strings.Contains(got, "TIME (UTC)") || !strings.Contains(got, "2030-01-02 03:04:05") {
		t.Error(got)
	}
}

func TestCompletesNodesAndOperations(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, layoutFile), []byte(`{"nodes":3,"peer_port":7101}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const plain, joined = ":4\n", ":6\n"
	check(t, "nodes", invocation{}.run("__complete", "dev", "restart", "--data-dir", dir, "").stdout, "n1\nn2\nn3\n"+plain)
	check(t, "nodes of the environment", invocation{env: []string{"LEASENODE_DATA_DIR=" + dir}}.run("__complete", "dev", "restart", "").stdout, "n1\nn2\nn3\n"+plain)
	check(t, "other nodes", invocation{}.run("__complete", "dev", "restart", "--data-dir", dir, "n2", "").stdout, "n1\nn3\n"+plain)
	check(t, "operations", invocation{}.run("__complete", "bench", "--op", "").stdout, "acquire\nrenew\nrelease\nget\nhandover\n"+joined)
	check(t, "more operations", invocation{}.run("__complete", "bench", "--op", "get,re").stdout, "get,acquire\nget,renew\nget,release\nget,handover\n"+joined)
}
