package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasenode/leasenode/lease"
)

func TestEnvironment(t *testing.T) {
	cases := []struct {
		name string
		env  []string
		args string
		want string // in standard output, or in standard error if the code is not 0
		code int
	}{
		{"a bad value", []string{"LEASENODE_TIMEOUT=-"}, "get k", "LEASENODE_TIMEOUT=-", 2},
		{"the flag wins", []string{"LEASENODE_TIMEOUT=-"}, "get k --timeout 1s", `"epoch":0`, 0},
		{"empty is not set", []string{"LEASENODE_TIMEOUT="}, "get k", `"epoch":0`, 0},
		{"the last one counts", []string{"LEASENODE_TIMEOUT=-", "LEASENODE_TIMEOUT=1s"}, "get k", `"epoch":0`, 0},
		{"a dash, of a server", []string{"LEASENODE_LOG_LEVEL=loud"}, "dev", "LEASENODE_LOG_LEVEL=loud", 2},
		{"a required flag of a server", []string{"LEASENODE_ID=N", "LEASENODE_PEER_ADDR=h:1", "LEASENODE_API_ADDR=h:2", "LEASENODE_CLUSTER=n1=h:1"}, "serve --data-dir d", `the name "N"`, 2},
		{"another command's", []string{"LEASENODE_NODES=many"}, "get k", `"epoch":0`, 0},
		{"not the owner", []string{"LEASENODE_OWNER=env"}, "acquire k", "needs --owner", 2},
		{"not the ttl", []string{"LEASENODE_TTL=1h"}, "acquire k --owner o", `"remaining_ms":10000`, 0},
		{"not the attributes", []string{"LEASENODE_ATTR=a=1,b=2"}, "acquire k --owner o", `"attributes":{}`, 0},
		{"not the request", []string{"LEASENODE_REQUEST_ID=" + strings.Repeat("x", 65)}, "acquire k --owner o", `"epoch":1`, 0},
		{"not the heir", []string{"LEASENODE_TO=x"}, "release k --owner o --epoch 1", "was never granted", 4},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			store, _ := stillStore()
			got := invocation{cluster: fakeCluster{Store: store}, env: append(c.env, "LEASENODE_OUTPUT=json")}.run(strings.Fields(c.args)...)
			check(t, "code", got.code, c.code)
			text := got.stdout
			if c.code != 0 {
				text = got.stderr
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("no %s in %s", c.want, text)
			}
		})
	}
}

// What runs under lock has the key and the epoch of lock's lease in its environment. They
// are no flags of the commands that it calls.
func TestWhatLockExportsIsNoFlag(t *testing.T) {
	env := []string{"LEASENODE_KEY=job/a", "LEASENODE_EPOCH=7"}
	var asked lease.WatchRequest
	invocation{env: env, cluster: fakeCluster{Watcher: toldWatch{err: lease.ErrUnavailable, asked: &asked}}}.run("watch")
	check(t, "what is watched", asked, lease.WatchRequest{Selection: lease.HeldOnly})
	for _, command := range []string{"renew", "release", "forget"} {
		store, _ := stillStore()
		got := invocation{env: env, cluster: fakeCluster{Store: store}}.run(command, "other", "--owner", "z")
		check(t, command, got, outcome{exitUsage, "", `leasenode: needs --epoch (see "leasenode ` + command + ` --help")` + "\n"})
	}
}

// TestHelpNamesEnvironment holds that every flag names its environment variable if, and
// only if, it can come from there, and that every command explains itself.
func TestHelpNamesEnvironment(t *testing.T) {
	a := &app{output: newChoice("table", "json")}
	named := map[string][]string{}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || (cmd.Runnable() && cmd.Example == "") {
			t.Errorf("%s does not explain itself", cmd.CommandPath())
		}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "[$"+envName(f.Name)+"]") {
				named[cmd.CommandPath()] = append(named[cmd.CommandPath()], f.Name)
			}
			if strings.Count(f.Usage, "[$") > 1 {
				t.Errorf("--%s of %s: %s", f.Name, cmd.CommandPath(), f.Usage)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(a.rootCommand())
	want := map[string][]string{
		"leasenode":       {"endpoints", "output", "timeout"},
		"leasenode dev":   {"api-port", "data-dir", "http-port", "log-level", "log-store", "max-keys", "nodes", "peer-port"},
		"leasenode serve": {"api-addr", "api-listen", "cluster", "data-dir", "dial", "http-addr", "id", "log-format", "log-level", "log-store", "max-keys", "peer-addr", "peer-listen"},
	}
	check(t, "flags that name a variable", fmt.Sprint(named), fmt.Sprint(want))
}

func TestCompletion(t *testing.T) {
	got := invocation{}.run("completion", "bash")
	if got.code != 0 || !strings.Contains(got.stdout, "leasenode") {
		t.Errorf("%+v", got)
	}
	check(t, "words of -o", invocation{}.run("__complete", "get", "-o", "").stdout, "table\njson\n:4\n")
}

func TestWords(t *testing.T) {
	for in, want := range map[string]string{
		"a/b:1": "a/b:1", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'", "-": "-", "ä": "'ä'",
	} {
		check(t, "shellWord "+in, shellWord(in), want)
	}
	for in, want := range map[time.Duration]string{
		12345 * time.Millisecond: "12.3s", 999 * time.Microsecond: "1ms", 0: "0s", 100 * time.Millisecond: "100ms",
		61234 * time.Millisecond: "1m1s", 24 * time.Hour: "24h", 10 * time.Hour: "10h",
		10 * time.Minute: "10m", 90 * time.Minute: "1h30m", 10 * time.Second: "10s",
	} {
		check(t, "length", length(in), want)
	}
}

func TestTypedName(t *testing.T) {
	const module = "go run github.com/leasenode/leasenode/cmd/leasenode"
	for in, want := range map[string]string{
		"leasenode":                           "leasenode",
		"./bin/leasenode":                     "./bin/leasenode",
		"/my bin/ln":                          "'/my bin/ln'",
		"/tmp/go-build123/b001/exe/leasenode": module,
		"/root/.cache/go-build/ab/abcd-d/leasenode":                 module,
		"/other/" + strings.Repeat("0123abcd", 8) + "-d/leasenode":  module,
		"/home/go-builder/leasenode":                                "/home/go-builder/leasenode",
		"/home/u/" + strings.Repeat("0123abcd", 8) + "-e/leasenode": "/home/u/" + strings.Repeat("0123abcd", 8) + "-e/leasenode",
	} {
		check(t, in, typedName(in), want)
	}
	t.Chdir("../..")
	check(t, "in the module", typedName("/tmp/go-build123/b001/exe/leasenode"), "go run ./cmd/leasenode")
}
