package main

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"
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
	remedy := "asked " + addr + `; see "leasenode status", or start a cluster here with "leasenode dev"` + "\n"
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
