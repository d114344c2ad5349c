// chaosnode runs one node of a cluster as "leasenode serve" does, with a clock and a
// disk that its harness can make go wrong, and, if asked to, with a broken promise. It is
// for tests of a harness and of nothing else.
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
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/chaosnode/faulty"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

const exitUsage = 2

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	code := run(ctx, os.Args[1:], stdio{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

type stdio struct {
	in       io.Reader
	out, err io.Writer
}

// options are what the command line says.
type options struct {
	config     node.Config
	logLevel   string
	broken     string
	controlled bool
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	var cluster, dial, logStore string
	flags := flag.NewFlagSet("chaosnode", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.config.ID, "id", "", "the name of this node")
	flags.StringVar(&o.config.DataDir, "data-dir", "", "the folder of this node")
	flags.StringVar(&o.config.PeerAddr, "peer-addr", "", "where the other nodes reach this one")
	flags.StringVar(&o.config.APIAddr, "api-addr", "", "where clients reach this node")
	flags.StringVar(&o.config.PeerListen, "peer-listen", "", "where to listen for the other nodes, if not at --peer-addr")
	flags.StringVar(&o.config.APIListen, "api-listen", "", "where to listen for clients, if not at --api-addr")
	flags.StringVar(&cluster, "cluster", "", "all nodes: n1=host:port,n2=host:port,n3=host:port")
	flags.StringVar(&dial, "dial", "", "where this node dials some of its peers")
	flags.StringVar(&logStore, "log-store", "", "how to keep the log: bolt or wal")
	flags.StringVar(&o.logLevel, "log-level", "info", "how much to log")
	flags.StringVar(&o.broken, "broken", "", "break a promise in this way")
	flags.BoolVar(&o.controlled, "control", false, "take commands from standard input, and end with it")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	o.config.LogStore = disk.LogKind(logStore)
	var err, dialErr error
	o.config.Cluster, err = node.ParsePeers(cluster)
	if dial != "" {
		o.config.Dial, dialErr = node.ParsePeers(dial)
	}
	return o, errors.Join(err, dialErr)
}

// run runs a node until ctx ends or the node does, and returns the exit code.
func run(ctx context.Context, args []string, std stdio) int {
	o, err := parse(args, std.err)
	if err != nil {
		fmt.Fprintf(std.err, "chaosnode: %v\n", err)
		return exitUsage
	}
	parts := node.SystemParts(hclog.New(&hclog.LoggerOptions{Name: o.config.ID, Level: hclog.LevelFromString(o.logLevel), Output: std.err}))
	clock, drive := faulty.NewClock(parts.Clock), faulty.NewDisk()
	parts.Clock, parts.OpenStores = clock, drive.Open
	tune(&parts.Tuning)
	if o.broken != "" {
		if err := faulty.Break(&parts, o.broken); err != nil {
			fmt.Fprintf(std.err, "chaosnode: %v\n", err)
			return exitUsage
		}
	}
	if o.controlled {
		drive.Tell = func(e control.Event) { _ = control.Tell(std.out, e) } // without a harness nobody misses it
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		// The read cannot be ended: this goroutine lives as long as the process.
		go func() {
			defer stop()
			if err := control.Serve(std.in, std.out, clock, drive); err != nil {
				fmt.Fprintf(std.err, "chaosnode: %v\n", err)
			}
		}()
	}
	if err := serve(ctx, o.config, parts); err != nil {
		fmt.Fprintf(std.err, "chaosnode: node %s: %v\n", o.config.ID, err)
		return node.ExitCode(err)
	}
	return 0
}

// tune has a node take snapshots every second or two under a load for which a real one
// takes none in a minute, and a node that was away for seconds receive one.
func tune(t *raftnet.Tuning) {
	t.SnapshotEntries, t.SnapshotInterval, t.TrailingEntries = 50, 500*time.Millisecond, 20
}

func serve(ctx context.Context, config node.Config, parts node.Parts) error {
	n, err := node.Open(ctx, config, parts)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	parts.Logger.Info("serving", "clients", config.APIAddr, "peers", config.PeerAddr)
	select {
	case <-n.Done():
		return errors.Join(n.Err(), n.Close())
	case <-ctx.Done():
		return n.Close()
	}
}
