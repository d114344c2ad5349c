package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// pidFile is the file in a node's data directory with its process id, there while
// the node serves.
const pidFile = "node.pid"

// serveOptions are the flags of serve, some of them still to be parsed.
type serveOptions struct {
	config        node.Config
	cluster, dial string
	logLevel      *choice
	logFormat     *choice
	logStore      *choice
}

func newServeOptions() *serveOptions {
	return &serveOptions{logLevel: newLogLevel(), logFormat: newChoice("text", "json"), logStore: newLogStore()}
}

// newLogStore is a flag whose default is what the directory has.
func newLogStore() *choice {
	store := newChoice(string(disk.LogBolt), string(disk.LogWAL))
	store.value = ""
	return store
}

func newLogLevel() *choice {
	level := newChoice("trace", "debug", "info", "warn", "error")
	level.value = "info"
	return level
}

func (a *app) serveCommand() *cobra.Command {
	options := newServeOptions()
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one node of a cluster",
		Long: `Run one node of a cluster, in the foreground, until it gets SIGTERM or SIGINT. It
then hands leadership to another node and stops; a second signal ends it at once.

Start each node of --cluster with the same list, which has to name all of them, this
one too. The cluster is founded when all of them are there for the first time; later
the list is only compared. What must not be lost is in --data-dir: a node that lost
it is a stranger to its cluster.

--peer-addr and --api-addr are what the others and the clients are told. Where a node
has to listen somewhere else, say so with --peer-listen and --api-listen.`,
		Example: `  leasenode serve --id n1 --data-dir /var/lib/leasenode \
    --peer-addr 10.0.0.1:7101 --api-addr 10.0.0.1:7201 \
    --cluster n1=10.0.0.1:7101,n2=10.0.0.2:7101,n3=10.0.0.3:7101`,
		Args: noArguments,
	}
	options.define(cmd)
	cmd.RunE = a.action(func(ctx context.Context, _ []string) error {
		config, err := options.parse()
		if err != nil {
			return err
		}
		ctx, release, err := withLifeline(ctx, a.env)
		if err != nil {
			return err
		}
		defer release()
		return serve(ctx, config, a.logger(options))
	})
	return cmd
}

func (o *serveOptions) define(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.config.ID, "id", "", "the name of this node, for ever: a-z, 0-9 and -")
	flags.StringVar(&o.config.DataDir, "data-dir", "", "the folder of this node, and of no other")
	flags.StringVar(&o.config.PeerAddr, "peer-addr", "", "where the other nodes reach this one, host:port")
	flags.StringVar(&o.config.APIAddr, "api-addr", "", "where clients reach this node, host:port")
	flags.StringVar(&o.config.PeerListen, "peer-listen", "", "where to listen for the other nodes, if not at --peer-addr")
	flags.StringVar(&o.config.APIListen, "api-listen", "", "where to listen for clients, if not at --api-addr")
	flags.StringVar(&o.cluster, "cluster", "", "all nodes with their peer addresses: n1=host:port,n2=host:port,n3=host:port")
	flags.StringVar(&o.dial, "dial", "", "where this node dials some of its peers, if not at their address: n2=host:port")
	flags.StringVar(&o.config.HTTPAddr, "http-addr", "", "where to serve metrics, health and profiles, host:port; nowhere if empty")
	flags.Uint64Var(&o.config.MaxKeys, "max-keys", node.DefaultMaxKeys(), "how many keys the cluster may have; read when it is founded")
	flags.Var(o.logStore, "log-store", "how to keep the log: bolt, or wal, which is faster; a log of the other kind is converted; if empty as it is, and bolt at first")
	flags.Var(o.logLevel, "log-level", "how much to log: trace, debug, info, warn or error")
	flags.Var(o.logFormat, "log-format", "how to log, on standard error: text or json")
	required(cmd, "id", "data-dir", "peer-addr", "api-addr", "cluster")
}

func (o *serveOptions) parse() (node.Config, error) {
	var err error
	if o.config.Cluster, err = node.ParsePeers(o.cluster); err != nil {
		return node.Config{}, usagef("cluster: %w", err)
	}
	if o.dial != "" {
		if o.config.Dial, err = node.ParsePeers(o.dial); err != nil {
			return node.Config{}, usagef("dial: %w", err)
		}
	}
	o.config.LogStore = disk.LogKind(o.logStore.value)
	if err := o.config.Validate(); err != nil {
		return node.Config{}, &usageError{err}
	}
	return o.config, nil
}

func (a *app) logger(o *serveOptions) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name:       o.config.ID,
		Level:      hclog.LevelFromString(o.logLevel.value),
		Output:     a.stderr,
		JSONFormat: o.logFormat.value == "json",
	})
}

// serve runs a node until ctx ends, which is a clean stop and no error, or until
// the node stops by itself.
func serve(ctx context.Context, config node.Config, logger hclog.Logger) error {
	n, err := node.Open(ctx, config, node.SystemParts(logger))
	if err != nil && ctx.Err() != nil {
		logger.Info("stopped before it served", "why", context.Cause(ctx), "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("start node %s: %w", config.ID, err)
	}
	pid := filepath.Join(config.DataDir, pidFile)
	if err := os.WriteFile(pid, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644); err != nil {
		return errors.Join(fmt.Errorf("note the process id: %w", err), n.Close())
	}
	logger.Info("serving", "clients", config.APIAddr, "peers", config.PeerAddr, "data", config.DataDir, "pid", os.Getpid())
	select {
	case <-n.Done():
		return fmt.Errorf("node %s stopped by itself: %w", config.ID, errors.Join(n.Err(), n.Close()))
	case <-ctx.Done():
	}
	logger.Info("stopping", "why", context.Cause(ctx))
	if err := errors.Join(n.Close(), os.Remove(pid)); err != nil {
		return fmt.Errorf("stop node %s: %w", config.ID, err)
	}
	logger.Info("stopped")
	return nil
}

// lifelineEnv names, between dev and the nodes it starts, the file descriptor of a
// pipe that is open for as long as dev lives.
const lifelineEnv = "LEASENODE_LIFELINE_FD"

var errLifelineCut = errors.New("the process that started this node is gone")

// withLifeline returns a context that ends with ctx, and when whoever started this
// process is gone, if the environment has a lifeline. The function that it returns
// has to be called in the end, and waits for the goroutine that watches.
func withLifeline(ctx context.Context, env []string) (context.Context, func(), error) {
	value, ok := lookup(env, lifelineEnv)
	if !ok {
		return ctx, func() {}, nil
	}
	fd, err := strconv.ParseUint(strings.TrimSpace(value), 10, 16)
	if err != nil {
		return nil, nil, usagef("the environment variable %s=%s is for internal use: %w", lifelineEnv, value, err)
	}
	pipe, err := openLifeline(uintptr(fd))
	if err != nil {
		return nil, nil, fmt.Errorf("watch the process that started this node: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// Nothing is ever written: a read returns when the other end is closed, or
		// this one.
		_, _ = pipe.Read(make([]byte, 1))
		cancel(errLifelineCut)
	}()
	return ctx, func() { _ = pipe.Close(); <-watched }, nil
}
