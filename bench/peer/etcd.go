package peer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasenode/leasenode/bench/etcdmember"
	"github.com/leasenode/leasenode/bench/proc"
)

// StartEtcd starts three members of etcd, each this program run again, and returns when
// they are ready. The program has to hand such a run to [etcdmember.Run].
func StartEtcd(ctx context.Context, home Home) (*Cluster, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	places, err := home.members("etcd", members)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, m := range places {
		list = append(list, m.name+"=http://"+m.peer)
	}
	c := &Cluster{name: "etcd", version: etcdmember.Version(), probe: probeEtcd}
	for _, m := range places {
		c.addrs = append(c.addrs, m.client)
		c.commands = append(c.commands, proc.Command{
			Name: "etcd member " + m.name, Path: self, Dir: m.dir,
			Args: etcdmember.Member{
				Name: m.name, DataDir: filepath.Join(m.dir, "data"),
				ClientAddr: m.client, PeerAddr: m.peer, Cluster: strings.Join(list, ","),
			}.Args(),
		})
	}
	return c.start(ctx)
}

// probeEtcd asks for the member's status and has it answer a linearizable read.
func probeEtcd(ctx context.Context, addr string) (role, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		return follows, err
	}
	defer func() { _ = client.Close() }()
	status, err := client.Status(ctx, addr)
	if err != nil {
		return follows, err
	}
	if _, err := client.Get(ctx, "probe"); err != nil {
		return follows, err
	}
	if status.Leader == status.Header.GetMemberId() {
		return leads, nil
	}
	return follows, nil
}
