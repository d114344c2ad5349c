package peer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/bench/etcdmember"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/proc"
)

func TestMain(m *testing.M) {
	if etcdmember.IsMember(os.Args[1:]) {
		fmt.Fprintln(os.Stderr, etcdmember.Run(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// build builds the binary of leasenode.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "leasenode")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/leasenode")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build leasenode: %v\n%s", err, out)
	}
	return binary
}

func TestClustersComeBackAfterTheLeaderIsKilled(t *testing.T) {
	home := peer.Home{Dir: t.TempDir(), Ports: &proc.Ports{}}
	for name, start := range map[string]func(context.Context) (*peer.Cluster, error){
		"etcd": func(ctx context.Context) (*peer.Cluster, error) { return peer.StartEtcd(ctx, home) },
		"leasenode": func(ctx context.Context) (*peer.Cluster, error) {
			return peer.StartLeasenode(ctx, home, peer.Leasenode{Binary: build(t), LogStore: "bolt"})
		},
		"ZooKeeper": func(ctx context.Context) (*peer.Cluster, error) { return peer.StartZooKeeper(ctx, home) },
		"Redis":     func(ctx context.Context) (*peer.Cluster, error) { return peer.StartRedis(ctx, home) },
	} {
		t.Run(name, func(t *testing.T) {
			cluster, err := start(t.Context())
			if errors.Is(err, peer.ErrNotInstalled) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				pids := cluster.Pids()
				if err := cluster.Close(); err != nil {
					t.Error(err)
				}
				for _, pid := range pids {
					if syscall.Kill(pid, 0) == nil {
						t.Errorf("process %d is left", pid)
					}
				}
			})
			killLeader(t, cluster)
		})
	}
}

func killLeader(t *testing.T, cluster *peer.Cluster) {
	t.Helper()
	if cluster.Version() == "" || cluster.Version() == "unknown" {
		t.Errorf("the version is %q", cluster.Version())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader, err := cluster.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	old := cluster.Pids()[leader]
	if err := cluster.Kill(leader); err != nil {
		t.Fatal(err)
	}
	if syscall.Kill(old, 0) == nil {
		t.Fatalf("process %d is still there", old)
	}
	if err := cluster.Restart(leader); err != nil {
		t.Fatal(err)
	}
	if err := cluster.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	if cluster.Pids()[leader] == old {
		t.Error("it is the same process")
	}
}
