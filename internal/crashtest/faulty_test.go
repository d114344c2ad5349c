package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// faultyMedium is a disk whose writes hang for ever, or fail, once told so.
type faultyMedium struct {
	disk.Medium
	hangs, fails *atomic.Bool
}

func (m faultyMedium) Write(c disk.Change) error {
	if m.hangs.Load() {
		select {}
	}
	if m.fails.Load() {
		return errors.New("input/output error (made up)")
	}
	return m.Medium.Write(c)
}

// serveFaulty runs a node on a faulty disk until it is killed. args are its name,
// directory, peer and API address, the list of all nodes, and how its log is kept.
func serveFaulty(args []string) int {
	peers, err := node.ParsePeers(args[4])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var hangs, fails atomic.Bool
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range signals {
			hangs.Store(s == syscall.SIGUSR1)
			fails.Store(s == syscall.SIGUSR2)
		}
	}()
	parts := node.SystemParts(hclog.New(&hclog.LoggerOptions{Name: args[0], Output: os.Stderr}))
	parts.OpenStores = func(cfg disk.Config) (*disk.Stores, error) {
		cfg.Wrap = func(m disk.Medium) disk.Medium { return faultyMedium{m, &hangs, &fails} }
		return disk.Open(cfg)
	}
	cfg := node.Config{ID: args[0], DataDir: args[1], PeerAddr: args[2], APIAddr: args[3], Cluster: peers, LogStore: disk.LogKind(args[5])}
	n, err := node.Open(context.Background(), cfg, parts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return node.ExitCode(err)
	}
	<-n.Done()
	return node.ExitCode(n.Err())
}
