package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// process is what a run of the command gets from outside.
type process struct {
	args           []string // without the name
	stdin          io.Reader
	stdout, stderr io.Writer
}

// usageError is the user's: the exit code says so.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errFailed says that the promises did not hold; what there is to say has been said.
var errFailed = errors.New("the promises did not hold")

// errUnknown says that some check could not find out.
var errUnknown = errors.New("some check could not find out: see above")

// run executes one command line and returns the exit code.
func run(ctx context.Context, p process) int {
	running := false
	root := rootCommand(p, &running)
	root.SetArgs(p.args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	err := root.ExecuteContext(ctx)
	usage, isUsage := errors.AsType[*usageError](err)
	switch {
	case err == nil:
		return exitPass
	case errors.Is(err, errFailed):
		return exitFail
	case isUsage || !running:
		if isUsage {
			err = usage
		}
		fmt.Fprintf(p.stderr, "jepsen-like: %v\nTry --help.\n", err)
		return exitUsage
	default:
		fmt.Fprintf(p.stderr, "jepsen-like: %v\n", err)
		return exitBroke
	}
}

func rootCommand(p process, running *bool) *cobra.Command {
	s := settings{}
	cmd := &cobra.Command{
		Use:   "jepsen-like",
		Short: "Do to a cluster what the world will do, and see whether its promises hold",
		Long: `Start a cluster of real leasenode processes on this machine, without root, let clients
and holders work with it, do to it what a seed says, and judge what happened.

The folder of a run has the history of all operations, the log of each node, the
schedule of faults and report.html. The same seed gives the same schedule of faults and
operations.

Faults are named by groups or kinds, separated by commas:
` + faultHelp() + `
Nobody can do what is marked * to leasenode from outside (disk-full: without --mount). The
harness has a node program of its own for that, chaosnode: it is taken if --faults names
such a fault, or clock or disk, or by --node chaosnode. By default the nodes are leasenode:
then all, and process, are what can be done to that, and the run says what it left out.

Exit codes: 0 the promises held, 1 they did not, 2 usage, 3 the harness could not do
its work.`,
		Example: `  jepsen-like --time 60s --seed 7
  jepsen-like --nodes 5 --faults partition,kill-leader --out /tmp/run
  jepsen-like --node chaosnode                    all faults there are
  jepsen-like --faults clock,disk                 nodes of the harness's own, for what needs them
  jepsen-like --endpoints 10.0.0.1:7201,10.0.0.2:7201,10.0.0.3:7201
  jepsen-like --schedule /tmp/run/schedule.json   the same faults again
  jepsen-like --judge /tmp/run                    judge a run again
  jepsen-like --workload-command './my-program --serve'`,
		Args:          func(_ *cobra.Command, args []string) error { return nil },
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, args []string) error {
			*running = true
			return s.do(cmd.Context(), p, given{cmd.Flags(), args})
		},
	}
	s.define(cmd.Flags())
	cmd.AddCommand(holdCommand(p, running))
	cmd.CompletionOptions.DisableDefaultCmd = true
	return cmd
}

// given is what stood on the command line.
type given struct {
	flags *pflag.FlagSet
	args  []string
}

func (g given) flag(name string) bool { return g.flags.Changed(name) }

// repeat returns the command line that does a campaign again.
func repeat(c campaign, g given) string {
	words := []string{"go run ./jepsen-like"}
	g.flags.Visit(func(f *pflag.Flag) {
		if f.Name == "out" || f.Name == "seed" {
			return
		}
		value := f.Value.String()
		if slice, ok := f.Value.(pflag.SliceValue); ok {
			value = strings.Join(slice.GetSlice(), ",")
		}
		if value == "true" {
			words = append(words, "--"+f.Name)
			return
		}
		words = append(words, "--"+f.Name, quoted(value))
	})
	return strings.Join(append(words, "--seed", strconv.FormatUint(c.seed, 10)), " ")
}

// quoted returns a word as a shell wants it.
func quoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n'\"\\$`*?;&|<>()#~") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// do does what the settings ask for: a run, or something with the folders of runs.
func (s *settings) do(ctx context.Context, p process, g given) error {
	if len(g.args) > 0 && !s.table {
		return usagef("%q is no flag: only --table takes arguments, the folders of runs", strings.Join(g.args, " "))
	}
	switch {
	case s.table && len(g.args) == 0:
		return usagef("--table needs the folders of runs, as in --table /tmp/run1 /tmp/run2")
	case s.table:
		return printTable(p.stdout, g.args)
	case s.judge != "":
		return judgeFolder(p.stdout, s.judge)
	}
	c, err := s.resolve(g)
	if err != nil {
		return err
	}
	c.repeat = repeat(c, g)
	if s.printSchedule {
		text, err := c.schedule.Encode()
		if err != nil {
			return err
		}
		_, err = p.stdout.Write(text)
		return err
	}
	if err := makeFolder(c.out); err != nil {
		return err
	}
	return chaos(ctx, p, c)
}

const defaultTime = time.Minute
