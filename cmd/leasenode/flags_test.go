package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestEnvironment(t *testing.T) {
	cases := []struct {
		name string
		env  []string
		args string
		want string // in standard output, or in standard error if the code is not 0
		code int
	}{
		{"a required flag", []string{"LEASENODE_OWNER=env"}, "acquire k", `"owner":"env"`, 0},
		{"the flag wins", []string{"LEASENODE_OWNER=env"}, "acquire k --owner flag", `"owner":"flag"`, 0},
		{"a dash", []string{"LEASENODE_REQUEST_ID=" + strings.Repeat("x", 65)}, "acquire k --owner o", "request_id has 65 bytes", 2},
		{"a bad value", []string{"LEASENODE_TTL=soon"}, "acquire k --owner o", "LEASENODE_TTL=soon", 2},
		{"a bad global value", []string{"LEASENODE_TIMEOUT=-"}, "get k", "LEASENODE_TIMEOUT=-", 2},
		{"empty is not set", []string{"LEASENODE_TTL="}, "acquire k --owner o", `"remaining_ms":10000`, 0},
		{"the last one counts", []string{"LEASENODE_OWNER=a", "LEASENODE_OWNER=b"}, "acquire k", `"owner":"b"`, 0},
		{"pairs", []string{"LEASENODE_ATTR=a=1,b=2"}, "acquire k --owner o", `"attributes":{"a":"1","b":"2"}`, 0},
		{"another command's", []string{"LEASENODE_NODES=many"}, "get k", `"epoch":0`, 0},
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

// TestHelpNamesEnvironment holds that every flag of every command can come from the
// environment and says so, and that every command explains itself.
func TestHelpNamesEnvironment(t *testing.T) {
	a := &app{output: newChoice("table", "json")}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" || (cmd.Runnable() && cmd.Example == "") {
			t.Errorf("%s does not explain itself", cmd.CommandPath())
		}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(f.Usage, "$LEASENODE_") {
				t.Errorf("--%s of %s does not name its environment variable", f.Name, cmd.CommandPath())
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(a.rootCommand())
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
