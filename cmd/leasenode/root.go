package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// process is what a run of the command gets from outside.
type process struct {
	name           string   // as it was typed: the first word of examples that are printed
	args           []string // without the name
	env            []string // NAME=value
	stdin          io.Reader
	stdout, stderr io.Writer
	dial           dialFunc
}

// app is one run of the command: the process it is and the global flags.
type app struct {
	process
	endpoints []string
	timeout   time.Duration
	output    *choice
	// running is set once flags and arguments were accepted: an error before that
	// is the user's, and the exit code says so.
	running bool
	command string // that was executed, once it has failed: "leasenode get"
	// endpointsTyped tells endpoints that were given on the command line, and so have
	// to be repeated in commands that are suggested, from those of the environment.
	endpointsTyped bool
}

// defaultEndpoints are the nodes that "leasenode dev" starts if nothing is said.
const defaultEndpoints = "127.0.0.1:7201,127.0.0.1:7202,127.0.0.1:7203"

// run executes one command line and returns the exit code. It ends when the
// command is done or, as soon as it cleanly can, when ctx ends.
func run(ctx context.Context, p process) int {
	a := &app{process: p, output: newChoice("table", "json")}
	root := a.rootCommand()
	root.SetArgs(p.args)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil {
		if exit, ok := errors.AsType[*exitError](err); ok && exit.err == nil {
			return exit.code
		}
		a.command = cmd.CommandPath()
		if !a.running {
			err = &usageError{plainly(err)}
			a.findOutput()
		}
		return a.fail(err)
	}
	return exitDone
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "leasenode",
		Short: "One owner per key, without a single point of failure",
		Long: `leasenode gives a fleet of replicas one owner per key.

Whoever acquires a key owns it until its lease is over: then, or when the owner
releases it, somebody else can have it. Every grant of a key carries a number, the
epoch, which is one higher than that of the grant before and never repeats: give it
to whatever the owner writes to, and let that refuse a lower one.

Three or five nodes keep the leases together and go on when a minority of them is
lost. "leasenode dev" starts such a cluster on this machine; the other commands talk
to it unless --endpoints names another one. Any node of a cluster will do.

Exit codes: 0 done, 1 failed, 2 usage or an argument outside a limit, 3 held by
someone, 4 lost or fenced, 5 unavailable or outcome unknown.`,
		Example: `  leasenode dev
  leasenode acquire orders/7 --owner worker-1 --ttl 1m
  leasenode get orders/7
  leasenode status -o json`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: a.prepare,
	}
	flags := root.PersistentFlags()
	flags.StringSliceVar(&a.endpoints, "endpoints", strings.Split(defaultEndpoints, ","), "client addresses of some or all nodes, comma-separated")
	flags.DurationVar(&a.timeout, "timeout", 5*time.Second, "how long to try, not counting --wait")
	flags.VarP(a.output, "output", "o", "how to print results: table or json")
	root.SetFlagErrorFunc(flagError)
	root.Version = buildVersion().text()
	root.SetVersionTemplate("{{.Version}}\n")
	root.AddCommand(
		a.devCommand(), a.serveCommand(),
		a.acquireCommand(), a.renewCommand(), a.releaseCommand(), a.forgetCommand(),
		a.getCommand(), a.listCommand(), a.historyCommand(), a.watchCommand(),
		a.lockCommand(), a.guardCommand(),
		a.statusCommand(), a.checkCommand(), a.benchCommand(), a.versionCommand(),
	)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	describeFlags(root)
	return root
}

// prepare runs after the flags of cmd were parsed and before anything else.
func (a *app) prepare(cmd *cobra.Command, _ []string) error {
	a.endpointsTyped = cmd.Flags().Changed("endpoints")
	if err := applyEnvironment(cmd, a.env); err != nil {
		return err
	}
	if a.timeout <= 0 {
		return usagef("--timeout is %v: it must be longer than 0", a.timeout)
	}
	return nil
}

// action makes a cobra RunE of f, which is called with the command's context and
// its arguments once flags and arguments were accepted.
func (a *app) action(f func(ctx context.Context, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		a.running = true
		return f(cmd.Context(), args)
	}
}

// findOutput looks for the output format on a command line that was refused,
// where the flag may stand after the fault.
func (a *app) findOutput() {
	probe := &cobra.Command{}
	probe.Flags().VarP(a.output, "output", "o", "")
	probe.FParseErrWhitelist.UnknownFlags = true
	// A fault in this flag too changes nothing: the format found so far stays.
	if err := probe.ParseFlags(a.args); err != nil || probe.Flags().Changed("output") {
		return
	}
	if value, ok := lookup(a.env, envName("output")); ok {
		_ = a.output.Set(value)
	}
}
