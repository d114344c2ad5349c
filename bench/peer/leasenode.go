package peer

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/leasenode/leasenode/bench/proc"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// maxKeys is enough for everything a run can acquire. Keys are for ever.
const maxKeys = "10000000"

// Leasenode is how nodes of leasenode are run.
type Leasenode struct {
	Binary string
	// LogStore is bolt or wal; empty for what the binary does by itself.
	LogStore string
}

// StartLeasenode starts three nodes and returns when they are ready.
func StartLeasenode(ctx context.Context, home Home, l Leasenode) (*Cluster, error) {
	binary, err := filepath.Abs(l.Binary)
	if err != nil {
		return nil, fmt.Errorf("start leasenode: %w", err)
	}
	version, err := exec.CommandContext(ctx, binary, "version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for its version: %w", binary, err)
	}
	places, err := home.members("leasenode"+l.LogStore, members)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, m := range places {
		list = append(list, m.name+"="+m.peer)
	}
	c := &Cluster{name: "leasenode", version: strings.Join(strings.Fields(string(version)), " "), probe: probeLeasenode}
	for _, m := range places {
		c.addrs = append(c.addrs, m.client)
		c.data = append(c.data, filepath.Join(m.dir, "data"))
		c.metrics = append(c.metrics, "http://"+m.election+"/metrics")
		c.commands = append(c.commands, proc.Command{
			Name: "leasenode " + m.name, Path: binary, Dir: m.dir,
			Args: []string{
				"serve", "--id", m.name, "--data-dir", filepath.Join(m.dir, "data"), "--api-addr", m.client, "--peer-addr", m.peer,
				"--http-addr", m.election, "--cluster", strings.Join(list, ","), "--max-keys", maxKeys,
			},
		})
		if last := &c.commands[len(c.commands)-1]; l.LogStore != "" {
			last.Args = append(last.Args, "--log-store", l.LogStore)
		}
	}
	return c.start(ctx)
}

// probeLeasenode asks for the cluster's status and has the node answer a linearizable
// read.
func probeLeasenode(ctx context.Context, addr string) (role, error) {
	client, err := holder.Dial([]string{addr}, holder.StayWithEndpoints())
	if err != nil {
		return follows, err
	}
	defer func() { _ = client.Close() }()
	status, err := client.Status(ctx)
	if err != nil {
		return follows, err
	}
	if _, err := client.Get(ctx, lease.GetRequest{Key: "probe"}); err != nil {
		return follows, err
	}
	for _, m := range status.Members {
		switch {
		case m.APIAddr != addr:
		case !m.Healthy:
			return follows, errors.New("it is not healthy")
		case m.ID == status.Leader:
			return leads, nil
		}
	}
	return follows, nil
}
