package cells_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasenode/leasenode/bench/cells"
	"github.com/leasenode/leasenode/bench/etcdmember"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/plan"
	"github.com/leasenode/leasenode/bench/proc"
	"github.com/leasenode/leasenode/bench/report"
)

func TestMain(m *testing.M) {
	if etcdmember.IsMember(os.Args[1:]) {
		fmt.Fprintln(os.Stderr, etcdmember.Run(os.Args[1:]))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// start starts real clusters of etcd and leasenode.
func start(t *testing.T) cells.Clusters {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "leasenode")
	build := exec.Command("go", "build", "-o", binary, "./cmd/leasenode")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build leasenode: %v\n%s", err, out)
	}
	home := peer.Home{Dir: t.TempDir(), Ports: &proc.Ports{}}
	var clusters cells.Clusters
	var err error
	if clusters.Etcd, err = peer.StartEtcd(t.Context(), home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeCluster(t, clusters.Etcd) })
	for logStore, into := range map[string]**peer.Cluster{"bolt": &clusters.Leasenode, "wal": &clusters.LeasenodeWAL} {
		if *into, err = peer.StartLeasenode(t.Context(), home, peer.Leasenode{Binary: binary, LogStore: logStore}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { closeCluster(t, *into) })
	}
	return clusters
}

func closeCluster(t *testing.T, cluster *peer.Cluster) {
	t.Helper()
	if err := cluster.Close(); err != nil {
		t.Error(err)
	}
}

// TestEveryPartOfARun is small: what it measures means nothing, but that it can be
// measured does.
func TestEveryPartOfARun(t *testing.T) {
	clusters := start(t)
	progress := func(line string) { t.Log(line) }
	t.Run("load", func(t *testing.T) {
		load := cells.NewLoad(clusters, progress)
		defer func() {
			if err := load.Close(); err != nil {
				t.Error(err)
			}
		}()
		// More clients than this do nothing at all in a short time on a busy machine.
		load.Keep(func(name string) bool { return !strings.Contains(name, "512") && !strings.Contains(name, "1000") })
		found := load.Run(t.Context(), plan.Plan{Rounds: 1, WarmUp: 200 * time.Millisecond, Warm: 20 * time.Millisecond, Window: 500 * time.Millisecond})
		check(t, found)
		if len(found.Costs) == 0 {
			t.Error("there are no costs")
		}
		for _, row := range found.Goals {
			for _, system := range []report.System{report.Etcd, report.Leasenode} {
				if len(row.Figures[system]) != 1 {
					t.Errorf("%s: %d figures of one round for %s", row.Work, len(row.Figures[system]), system)
				}
			}
		}
	})
	t.Run("failover", func(t *testing.T) {
		kills := cells.KillPlan{Most: 1, Until: time.Now().Add(time.Hour)}
		check(t, cells.Failover(t.Context(), cells.Victims(clusters), kills, progress))
	})
	t.Run("memory", func(t *testing.T) {
		check(t, cells.Memory(t.Context(), cells.Hoards(clusters), cells.MemoryPlan{Leases: 200, Settle: 10 * time.Millisecond}, progress))
	})
}

// check wants figures of both systems in every row, and no faults.
func check(t *testing.T, found cells.Found) {
	t.Helper()
	for _, fault := range found.Faults {
		t.Error(fault)
	}
	if len(found.Goals) == 0 {
		t.Error("there are no rows")
	}
	for _, row := range append(found.Goals, found.Costs...) {
		for _, system := range []report.System{report.Etcd, report.Leasenode} {
			if len(row.Figures[system]) == 0 {
				t.Errorf("%s: there is no figure of %s", row.Work, system)
			}
		}
	}
	for _, row := range found.Goals {
		if note := row.Notes[report.ZooKeeper]; note != "" && note != cells.NotInstalled {
			t.Errorf("%s: ZooKeeper does not take part, but: %s", row.Work, note)
		}
	}
}

func TestARunWithoutTimeSaysSo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	quiet := func(string) {}
	var found cells.Found
	found.Add(cells.Failover(ctx, nil, cells.KillPlan{}, quiet))
	found.Add(cells.Memory(ctx, cells.Hoards(cells.Clusters{}), cells.MemoryPlan{Leases: 10}, quiet))
	for _, row := range found.Goals {
		for _, system := range []report.System{report.Etcd, report.Leasenode} {
			if row.Notes[system] != cells.TimeIsUp {
				t.Errorf("%s, %s: %q", row.Work, system, row.Notes[system])
			}
		}
	}
	text := report.Document{Goals: found.Goals}.Markdown()
	if !strings.Contains(text, "not measured") || len(found.Faults) > 0 {
		t.Errorf("%v\n%s", found.Faults, text)
	}
}
