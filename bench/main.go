// Bench-peers measures leasenode beside etcd, and beside ZooKeeper where that is
// installed, on one machine in one run, and writes what it found as a document: ratios,
// the goals, and whether they are reached.
//
// Every system is three processes on loopback with its default tuning, and fsyncs what it
// acknowledges; the load comes from this process. The systems take turns, A B A B, so that
// what else the machine does hits all of them. Absolute figures are about the machine, and
// nothing is held against them.
//
// It is a module of its own, so that etcd is linked here and nowhere else. For Linux.
// Start reading at package cells, which is the table of what is measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/leasenode/leasenode/bench/etcdmember"
	"github.com/leasenode/leasenode/bench/plan"
)

// config is what the command line says.
type config struct {
	total time.Duration
	// leases is how many are filled in; 0 for what the plan says.
	leases int
	// kills is how many leaders of each system are killed; 0 for what there is time for.
	kills int
	// only names the parts to run.
	only []string
	// cells has only the cells whose name has it in it.
	cells     string
	out       string
	dir       string
	leasenode string
	// command is the command line itself.
	command string
}

// The parts of a run.
const (
	partLoad     = "load"
	partFailover = "failover"
	partMemory   = "memory"
)

func main() { os.Exit(start(os.Args[1:], os.Stderr)) }

func start(args []string, stderr io.Writer) int {
	if etcdmember.IsMember(args) {
		fmt.Fprintln(stderr, etcdmember.Run(args))
		return 1
	}
	c, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench-peers:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, c, stderr); err != nil {
		fmt.Fprintln(stderr, "bench-peers:", err)
		return 1
	}
	return 0
}

func parse(args []string, stderr io.Writer) (config, error) {
	c := config{command: strings.Join(append([]string{"bench-peers"}, args...), " ")}
	flags := flag.NewFlagSet("bench-peers", flag.ContinueOnError)
	flags.SetOutput(stderr)
	quick := flags.Bool("quick", false, fmt.Sprintf("take %v instead of %v: rougher figures, fewer leases", plan.Quick, plan.Full))
	flags.DurationVar(&c.total, "time", 0, "how long the run may take, instead")
	flags.IntVar(&c.leases, "leases", 0, "how many leases to fill in for memory; 0 for what there is time for")
	flags.IntVar(&c.kills, "kills", 0, "how many leaders of each system to kill at most; 0 for what there is time for")
	only := flags.String("only", "", "run these parts only: a list of load, failover, memory")
	flags.StringVar(&c.cells, "cells", "", "of the load, measure only what has this in its name, as in acquire, 128")
	flags.StringVar(&c.out, "out", "RESULTS.md", "the file to write")
	flags.StringVar(&c.dir, "dir", ".", "the folder in which to put that of the run: the storage that is measured")
	flags.StringVar(&c.leasenode, "leasenode", "leasenode", "the binary of leasenode")
	if err := flags.Parse(args); err != nil {
		return config{}, err
	}
	if flags.NArg() > 0 {
		return config{}, fmt.Errorf("there are no arguments, but %q was given", flags.Arg(0))
	}
	if *quick && c.total != 0 {
		return config{}, errors.New("--quick and --time are both given: a run takes the one or the other")
	}
	if c.total == 0 {
		c.total = plan.Full
		if *quick {
			c.total = plan.Quick
		}
	}
	return c, c.choose(*only)
}

// choose notes which parts to run.
func (c *config) choose(only string) error {
	c.only = []string{partLoad, partFailover, partMemory}
	if only != "" {
		c.only = strings.Split(only, ",")
	}
	for _, part := range c.only {
		if part != partLoad && part != partFailover && part != partMemory {
			return fmt.Errorf("--only has %q: it must be a list of %s, %s, %s", part, partLoad, partFailover, partMemory)
		}
	}
	if c.leases < 0 || c.kills < 0 {
		return fmt.Errorf("--leases is %d and --kills is %d: neither can be negative", c.leases, c.kills)
	}
	return nil
}
