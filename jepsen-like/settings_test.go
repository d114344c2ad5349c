package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

func TestUsage(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(full, "file")
	for line, says := range map[string]string{
		"--nodes 2":                             "--nodes is 2: it must be odd",
		"--nodes 11":                            "--nodes is 11: it must be 1 to 9",
		"--time 10ms":                           "--time is 10ms",
		"--time soon":                           "invalid argument",
		"--faults fire":                         `there is no fault "fire"`,
		"--faults none,kill":                    "none goes with no other",
		"--intensity 0":                         "--intensity is 0",
		"--clients -1":                          "--clients is -1",
		"--keys 0":                              "--keys is 0",
		"--pause 0s":                            "--pause is 0s",
		"--recovery 0s":                         "--recovery is 0s",
		"--shrink -1s":                          "--shrink is -1s",
		"--node other":                          `--node is "other"`,
		"--broken everything":                   `--broken is "everything": it must be one of stale-reads`,
		"--broken stale-reads --node leasenode": "--broken needs --node chaosnode",
		"--faults clock --node leasenode":       "cannot be done to leasenode from outside",
		"--faults kill-snapshot --node leasenode":  "[kill-snapshot] cannot be done to leasenode from outside",
		"--endpoints nowhere":                      `--endpoints has "nowhere"`,
		"--endpoints a:1 --nodes 3":                "--endpoints and --nodes are both given",
		"--endpoints a:1 --faults kill":            "--endpoints and --faults are both given",
		"--workload-keys 2":                        "need --workload-command",
		"--workload-command true --holders 2":      "--holders and --workload-command are both given",
		"--schedule /no/such/file":                 "--schedule: open",
		"--schedule " + wrong:                      "--schedule " + wrong,
		"--schedule x --time 1m":                   "--schedule and --time are both given",
		"--out " + full:                            "has something in it",
		"--judge " + t.TempDir():                   "is no folder of a run",
		"--table":                                  "--table needs the folders",
		"--table " + t.TempDir():                   "is no folder of a run",
		"run":                                      `"run" is no flag`,
		"--colour red":                             "unknown flag: --colour",
		"--leasenode /no/such/binary --time 1s":    "--leasenode: stat",
		"--chaosnode /no/such --broken fast-clock": "--chaosnode: stat",
	} {
		args := strings.Fields(line)
		if !strings.Contains(line, "--out") && !strings.Contains(line, "--judge") && !strings.Contains(line, "--table") {
			args = append(args, "--out", filepath.Join(t.TempDir(), "run"))
		}
		r := command(t.Context(), args...)
		if r.code != exitUsage || !strings.Contains(r.stderr, says) || r.stdout != "" {
			t.Errorf("%s: exit code %d, standard output %q, standard error %q; want %q", line, r.code, r.stdout, r.stderr, says)
		}
	}
}

func TestTheSameSeedGivesTheSameSchedule(t *testing.T) {
	first := command(t.Context(), "--seed", "7", "--print-schedule")
	second := command(t.Context(), "--seed", "7", "--print-schedule")
	other := command(t.Context(), "--seed", "8", "--print-schedule")
	if first.code != exitPass || first.stdout != second.stdout || first.stdout == other.stdout {
		t.Errorf("exit code %d; the same: %v, another: %v", first.code, first.stdout == second.stdout, first.stdout != other.stdout)
	}
	schedule, err := nemesis.Decode([]byte(first.stdout))
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range schedule.Kinds() {
		if group := nemesis.GroupOf(kind); group == nemesis.Clock || group == nemesis.Disk || kind == nemesis.KillSnapshot {
			t.Errorf("all has %s, which cannot be done to leasenode", kind)
		}
	}
}

// What is printed to repeat a run is a command line that does it.
func TestTheCommandThatRepeats(t *testing.T) {
	for line, want := range map[string]string{
		"--nodes 5 --seed 3 --out /tmp/x":        "go run ./jepsen-like --nodes 5 --seed 3",
		"--faults kill,pause --seed 3":           "go run ./jepsen-like --faults kill,pause --seed 3",
		"--workload-command it's --seed 3":       `go run ./jepsen-like --workload-command 'it'\''s' --seed 3`,
		"--print-schedule --seed 3 --time 1m10s": "go run ./jepsen-like --print-schedule --time 1m10s --seed 3",
	} {
		running := false
		cmd := rootCommand(process{}, &running)
		if err := cmd.ParseFlags(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		if got := repeat(campaign{settings: settings{seed: 3}}, given{flags: cmd.Flags()}); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

func TestHelpNamesEveryFault(t *testing.T) {
	help := command(t.Context(), "--help")
	for _, about := range nemesis.Kinds() {
		if !strings.Contains(help.stdout, string(about.Kind)) {
			t.Errorf("--help does not name %s", about.Kind)
		}
		special := about.Group == nemesis.Clock || about.Group == nemesis.Disk || about.Kind == nemesis.KillSnapshot
		if marked := strings.Contains(help.stdout, about.Text+" *\n"); marked != (special && !about.Explicit) {
			t.Errorf("--help marks %s: %v", about.Kind, marked)
		}
	}
}

// A build of a minute that says nothing looks like a program that hangs.
func TestABuildIsAnnounced(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var told strings.Builder
	release, err := (&campaign{settings: settings{node: realNode}}).findBinary(ctx, &told)
	release()
	if err == nil || !strings.HasPrefix(told.String(), "jepsen-like: building the node programs") || strings.Count(told.String(), "\n") != 1 {
		t.Errorf("told %q, %v", &told, err)
	}
	told.Reset()
	release, err = (&campaign{settings: settings{endpoints: []string{"127.0.0.1:7201"}}}).findBinary(ctx, &told)
	release()
	if err != nil || told.Len() > 0 {
		t.Errorf("where nothing is built: told %q, %v", &told, err)
	}
}

func TestWhichProgramIsTaken(t *testing.T) {
	for line, want := range map[string]string{
		"":                                  "leasenode, left out 9",
		"--faults process":                  "leasenode, left out 1",
		"--faults kill,pause":               "leasenode, left out 0",
		"--faults process --node chaosnode": "chaosnode, left out 0",
		"--node chaosnode":                  "chaosnode, left out 0",
		"--faults kill-snapshot":            "chaosnode, left out 0",
		"--faults process,kill-snapshot":    "chaosnode, left out 0",
		"--faults kill,disk":                "chaosnode, left out 0",
		"--mount":                           "leasenode, left out 8",
		"--broken stale-reads":              "chaosnode, left out 0",
	} {
		s := settings{}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.define(flags)
		if err := flags.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		c, err := s.resolve(given{flags: flags})
		if got := fmt.Sprintf("%s, left out %d", c.node, len(c.left)); err != nil || got != want {
			t.Errorf("%q: %s (%v), want %s", line, got, err, want)
		}
	}
}
