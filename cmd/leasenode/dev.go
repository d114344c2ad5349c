package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/internal/node"
)

const (
	defaultDevDir = "leasenode-data"
	maxDevNodes   = 9
	loopback      = "127.0.0.1"
)

func (a *app) devCommand() *cobra.Command {
	plan := devPlan{logLevel: newLogLevel(), logStore: newLogStore()}
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a cluster of real nodes on this machine",
		Long: `Run a cluster of real nodes on this machine: one process for each, with its data and
its log in a folder of --data-dir. Ctrl-C stops all of them cleanly. Started again on
the same folder, the cluster carries on with all its leases.

Node k listens for clients at --api-port + k - 1 and for the other nodes at --peer-port
+ k - 1, on 127.0.0.1 only. A node that dies is not started again, so that you can see
what a cluster does without it: "leasenode dev restart" brings it back.`,
		Example: `  leasenode dev
  leasenode dev --nodes 5 --data-dir /tmp/five --api-port 8201 --peer-port 8101
  kill -9 $(cat leasenode-data/n2/node.pid); leasenode status
  leasenode dev restart n2`,
		Args: onlyCommands,
	}
	cmd.PersistentFlags().StringVar(&plan.dir, "data-dir", defaultDevDir, "the folder of the cluster")
	flags := cmd.Flags()
	flags.IntVar(&plan.nodes, "nodes", 3, "how many nodes: 1, 3, 5, 7 or 9")
	flags.IntVar(&plan.apiPort, "api-port", 7201, "the port for clients of the first node")
	flags.IntVar(&plan.peerPort, "peer-port", 7101, "the port for other nodes of the first node")
	flags.IntVar(&plan.httpPort, "http-port", 0, "the port for metrics, health and profiles of the first node; 0 for none")
	flags.Uint64Var(&plan.maxKeys, "max-keys", node.DefaultMaxKeys(), "how many keys the cluster may have; read when it is founded")
	flags.Var(plan.logStore, "log-store", "how the nodes keep their logs: bolt or wal; see serve")
	flags.Var(plan.logLevel, "log-level", "how much the nodes log: trace, debug, info, warn or error")
	cmd.RunE = a.action(func(ctx context.Context, _ []string) error { return a.dev(ctx, plan) })
	cmd.AddCommand(a.devRestartCommand(&plan))
	return cmd
}

// devPlan is the cluster that dev is asked for.
type devPlan struct {
	nodes                       int
	dir                         string
	apiPort, peerPort, httpPort int
	maxKeys                     uint64
	logLevel, logStore          *choice
}

// validate returns what is wrong with the plan.
func (p devPlan) validate() error {
	if p.nodes < 1 || p.nodes > maxDevNodes || p.nodes%2 == 0 {
		return usagef("--nodes is %d: it must be 1, 3, 5, 7 or 9, since an even number survives no more than the odd one below it", p.nodes)
	}
	if p.dir == "" {
		return usagef("--data-dir is empty: name a folder")
	}
	owner := map[int]string{}
	for _, r := range p.portRanges() {
		for port := r.first; port < r.first+p.nodes; port++ {
			if port < 1 || port > 65535 {
				return usagef("--%s is %d: %d nodes need ports up to %d, and they must be 1 to 65535", r.flag, r.first, p.nodes, r.first+p.nodes-1)
			}
			if other := owner[port]; other != "" {
				return usagef("--%s and --%s both come to port %d: set them at least %d apart", other, r.flag, port, p.nodes)
			}
			owner[port] = r.flag
		}
	}
	return nil
}

type portRange struct {
	flag  string
	first int
}

func (p devPlan) portRanges() []portRange {
	ranges := []portRange{{"api-port", p.apiPort}, {"peer-port", p.peerPort}}
	if p.httpPort != 0 {
		ranges = append(ranges, portRange{"http-port", p.httpPort})
	}
	return ranges
}

// checkPorts returns an error if one of the ports is not free.
func (p devPlan) checkPorts(ctx context.Context) error {
	var config net.ListenConfig
	for _, r := range p.portRanges() {
		for port := r.first; port < r.first+p.nodes; port++ {
			listener, err := config.Listen(ctx, "tcp", address(port))
			if err != nil {
				return fmt.Errorf("port %d cannot be used: %w; stop what uses it, or choose another --%s", port, err, r.flag)
			}
			if err := listener.Close(); err != nil {
				return fmt.Errorf("try port %d: %w", port, err)
			}
		}
	}
	return nil
}

func address(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }

// devMember is one node of a plan.
type devMember struct {
	id                string
	dir, log          string
	apiAddr, peerAddr string
	httpAddr          string   // "" for none
	args              []string // of the process
}

func (p devPlan) members() []devMember {
	var members []devMember
	var peers []string
	for k := range p.nodes {
		id := "n" + strconv.Itoa(k+1)
		dir := filepath.Join(p.dir, id)
		m := devMember{id: id, dir: dir, log: filepath.Join(dir, "node.log"), apiAddr: address(p.apiPort + k), peerAddr: address(p.peerPort + k)}
		members = append(members, m)
		peers = append(peers, id+"="+m.peerAddr)
	}
	for k := range members {
		m := &members[k]
		m.args = []string{
			"serve", "--id", m.id, "--data-dir", m.dir, "--peer-addr", m.peerAddr, "--api-addr", m.apiAddr,
			"--cluster", strings.Join(peers, ","),
			"--max-keys", strconv.FormatUint(p.maxKeys, 10), "--log-level", p.logLevel.value,
		}
		if p.logStore != nil && p.logStore.value != "" {
			m.args = append(m.args, "--log-store", p.logStore.value)
		}
		if p.httpPort != 0 {
			m.httpAddr = address(p.httpPort + k)
			m.args = append(m.args, "--http-addr", m.httpAddr)
		}
	}
	return members
}

// dev runs the plan until ctx ends.
func (a *app) dev(ctx context.Context, plan devPlan) (err error) {
	if err := plan.validate(); err != nil {
		return err
	}
	// Where nothing is yet no dev runs, and nothing is made that could not be used.
	taken := plan.checkPorts(ctx)
	if _, missing := os.Stat(plan.dir); taken != nil && errors.Is(missing, fs.ErrNotExist) {
		return taken
	}
	home, err := openDevHome(plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, home.close()) }()
	if taken != nil {
		return taken
	}
	if err := home.found(plan); err != nil {
		return err
	}
	s, err := newSupervisor(a, plan)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stopAll()) }()
	if err := s.startAll(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	door, err := openControl(home, s)
	if err != nil {
		return err
	}
	s.watch(ctx)
	return door.close()
}
