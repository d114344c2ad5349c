// Profile says what a cluster of leasenode spends its time for: it runs three processes,
// puts load on them, and takes profiles of the leader, of a follower and of the load
// generator, with two binaries in turns, before and after a change. It writes tables in
// markdown to standard output. For Linux. What the groups are is in package groups.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/proc"
)

// config is what the command line says.
type config struct {
	binaries []named
	logStore string
	dir      string
	seconds  int
}

// named is a binary and what it is called in the tables.
type named struct{ name, path string }

func main() { os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) }

func start(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "profile:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, []int{1, 128, 512}, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "profile:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("profile", flag.ContinueOnError)
	flags.SetOutput(stderr)
	before := flags.String("before", "", "the binary of leasenode before the change; may be left out")
	after := flags.String("leasenode", "leasenode", "the binary of leasenode")
	flags.StringVar(&c.logStore, "log-store", "", "how the nodes keep their logs, bolt or wal; empty for what the binary does, which may be older than the flag")
	flags.StringVar(&c.dir, "dir", ".", "the folder in which to put that of the run")
	flags.IntVar(&c.seconds, "seconds", 5, "how long to take each profile")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 || c.seconds < 1 {
		return c, errors.New("there are no arguments, and --seconds is 1 or more")
	}
	if *before != "" {
		c.binaries = append(c.binaries, named{"before", *before})
	}
	c.binaries = append(c.binaries, named{"after", *after})
	return c, nil
}

// run takes the profiles with each number of clients and writes their tables.
func run(ctx context.Context, c config, clients []int, stdout, stderr io.Writer) error {
	for _, n := range clients {
		var all []taken
		for _, binary := range c.binaries {
			fmt.Fprintf(stderr, "%d clients, %s\n", n, binary.name)
			t, err := c.take(ctx, binary, n)
			if err != nil {
				return fmt.Errorf("%d clients, %s: %w", n, binary.name, err)
			}
			all = append(all, t)
		}
		if _, err := io.WriteString(stdout, tables(n, all)); err != nil {
			return fmt.Errorf("write the tables: %w", err)
		}
	}
	return nil
}

// take runs a cluster of the binary under load and takes its profiles.
func (c config) take(ctx context.Context, binary named, clients int) (t taken, err error) {
	dir, err := os.MkdirTemp(c.dir, "run-")
	if err != nil {
		return t, fmt.Errorf("make the folder of the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	cluster, err := peer.StartLeasenode(ctx, peer.Home{Dir: dir, Ports: &proc.Ports{}}, peer.Leasenode{Binary: binary.path, LogStore: c.logStore})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	t = taken{name: binary.name}
	return t, t.fill(ctx, cluster, load{clients: clients, seconds: c.seconds})
}
