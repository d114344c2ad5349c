// Growth measures how a cluster of leasenode, three real processes on this machine, is
// after an hour of work, with many leases, with many connections, and with full
// histories. Each subcommand writes a series as a CSV file into --out; tables and pictures
// are made of these by the subcommand draw.
//
// For Linux. Start reading at churnLoad, and at package series for what is judged.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leasenode/leasenode/bench/growth/series"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/proc"
)

// config is what the command line says.
type config struct {
	leasenode string
	logStore  string
	out       string
	length    time.Duration
	every     time.Duration
	sizes     numbers
	stderr    io.Writer
	stdout    io.Writer
}

const usage = `usage: growth churn|leases|connections|history|draw [flags]

  churn        work at full rate for --for, and say whether memory, files and latency are flat
  leases       fill in leases, as many as each of --sizes, and look at the nodes
  connections  keep connections, as many as each of --sizes, and look at the nodes
  history      renew keys without and with a full history
  draw         make pictures and tables of the series in --out
`

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

func start(args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return 2
	}
	run, known := map[string]func(context.Context, config) error{
		"churn": churn, "leases": leases, "connections": connections, "history": history, "draw": draw,
	}[args[0]]
	c, err := parse(args[0], args[1:], stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case !known, err != nil:
		fmt.Fprint(stderr, usage)
		return 2
	}
	c.stdout = stdout
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(stderr, "growth:", err)
		return 1
	}
	return 0
}

func parse(command string, args []string, stderr io.Writer) (config, error) {
	c := config{stderr: stderr}
	flags := flag.NewFlagSet("growth "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.leasenode, "leasenode", "leasenode", "the binary of leasenode")
	flags.StringVar(&c.logStore, "log-store", "bolt", "how the nodes keep their logs: bolt or wal")
	flags.StringVar(&c.out, "out", ".", "the folder for the series, and during the run for the cluster: the storage that is measured")
	flags.DurationVar(&c.length, "for", time.Hour, "how long to work")
	flags.DurationVar(&c.every, "every", 10*time.Second, "how often to look")
	flags.Var(&c.sizes, "sizes", "how many leases or connections: a list of numbers that grow")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 || c.length <= 0 || c.every <= 0 {
		return c, fmt.Errorf("growth %s: --for and --every have to be more than 0, and there are no arguments", command)
	}
	return c, os.MkdirAll(c.out, 0o755)
}

// withCluster runs work on a new cluster, which is gone, with its folder, when it returns.
func (c config) withCluster(ctx context.Context, work func(*peer.Cluster) error) (err error) {
	dir, err := os.MkdirTemp(c.out, "run-")
	if err != nil {
		return fmt.Errorf("make the folder of the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := peer.StartLeasenode(ctx, peer.Home{Dir: dir, Ports: &proc.Ports{}}, peer.Leasenode{Binary: c.leasenode, LogStore: c.logStore})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	return work(cluster)
}

// seriesOf is the name of the series that a subcommand writes.
func (c config) seriesOf(subcommand string) string { return subcommand + "-" + c.logStore }

// withSeries runs work on a new cluster, with a new series of a subcommand to write.
func (c config) withSeries(ctx context.Context, subcommand string, columns []string, work func(*peer.Cluster, *series.Writer) error) error {
	return c.withCluster(ctx, func(cluster *peer.Cluster) (err error) {
		out, err := series.Create(c.file(subcommand), columns)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		return work(cluster, out)
	})
}

// file is where the series of a subcommand is.
func (c config) file(subcommand string) string {
	return filepath.Join(c.out, c.seriesOf(subcommand)+".csv")
}

func (c config) progress(format string, values ...any) {
	_, _ = fmt.Fprintf(c.stderr, format+"\n", values...)
}
