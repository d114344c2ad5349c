package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasenode/leasenode/bench/cells"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/plan"
	"github.com/leasenode/leasenode/bench/proc"
	"github.com/leasenode/leasenode/bench/report"
)

var errTimeIsUp = errors.New("the time of the run is up")

// benchmark is one run under way.
type benchmark struct {
	config config
	began  time.Time
	stderr io.Writer
	dir    string
	ports  proc.Ports
	// clusters counts those that were started, to give each a folder of its own.
	clusters int
	versions map[string]string
	plan     plan.Plan
	found    cells.Found
}

// run does all that the configuration says and writes the document. All processes that it
// started have ended when it returns.
func run(ctx context.Context, c config, stderr io.Writer) (err error) {
	dir, err := os.MkdirTemp(c.dir, "run-")
	if err != nil {
		return fmt.Errorf("make the folder of the run: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &benchmark{config: c, began: time.Now(), stderr: stderr, dir: dir, versions: map[string]string{}}
	limited, cancel := context.WithTimeoutCause(ctx, c.total, errTimeIsUp)
	defer cancel()
	syncTimes, err := proc.SyncTimes(dir, 200)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{partLoad, b.load}, {partFailover, b.failover}, {partMemory, b.memory}} {
		if !slices.Contains(c.only, part.name) {
			continue
		}
		if err := part.run(limited); err != nil && limited.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("stopped, and nothing written: %w", context.Cause(ctx))
		}
	}
	document := report.Document{
		Facts: b.facts(syncTimes),
		Goals: b.found.Goals, Costs: b.found.Costs, Reference: b.found.Reference, Faults: b.found.Faults,
	}
	if err := os.WriteFile(c.out, []byte(document.Markdown()), 0o644); err != nil {
		return fmt.Errorf("write what was found: %w", err)
	}
	b.progress("written to " + c.out)
	return nil
}

// progress tells what happens, with the time since the beginning.
func (b *benchmark) progress(line string) {
	_, _ = fmt.Fprintf(b.stderr, "%4.0f s of %.0f  %s\n", time.Since(b.began).Seconds(), b.config.total.Seconds(), line)
}

// load puts load on all systems.
func (b *benchmark) load(ctx context.Context) (err error) {
	clusters, stop, err := b.start(ctx, everySystem)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	load := cells.NewLoad(clusters, b.progress)
	defer func() { err = errors.Join(err, load.Close()) }()
	load.Keep(func(name string) bool { return strings.Contains(name, b.config.cells) })
	if b.plan, err = plan.New(b.config.total, load.Measurements()); err != nil {
		return err
	}
	b.progress(fmt.Sprintf("%d rounds, each measurement %v after %v to warm up", b.plan.Rounds, b.plan.Window, b.plan.Warm))
	b.found.Add(load.Run(ctx, b.plan))
	return nil
}

// planned returns the plan, for a run without load too.
func (b *benchmark) planned() (plan.Plan, error) {
	if b.plan.Total != 0 {
		return b.plan, nil
	}
	return plan.New(b.config.total, 1)
}

// failover kills leaders of fresh clusters.
func (b *benchmark) failover(ctx context.Context) (err error) {
	p, err := b.planned()
	if err != nil {
		return err
	}
	clusters, stop, err := b.start(ctx, onlyCounted)
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		b.found.Add(cells.Failover(ctx, nil, cells.KillPlan{}, b.progress))
		return err
	}
	kills := cells.KillPlan{Most: p.MostKills, Until: b.began.Add(p.KillsUntil)}
	if b.config.kills > 0 {
		kills = cells.KillPlan{Most: b.config.kills, Until: b.began.Add(p.Total)}
	}
	b.progress("failover")
	b.found.Add(cells.Failover(ctx, cells.Victims(clusters), kills, b.progress))
	return nil
}

// memory fills fresh clusters.
func (b *benchmark) memory(ctx context.Context) (err error) {
	p, err := b.planned()
	if err != nil {
		return err
	}
	m := cells.MemoryPlan{Leases: p.Leases, Settle: p.Settle}
	if b.config.leases > 0 {
		m.Leases = b.config.leases
	}
	clusters, stop, err := b.start(ctx, onlyCounted)
	defer func() { err = errors.Join(err, stop()) }()
	if err == nil {
		b.progress("memory")
	}
	b.found.Add(cells.Memory(ctx, cells.Hoards(clusters), m, b.progress))
	return err
}

// field is which systems take part.
type field uint8

const (
	everySystem field = iota
	onlyCounted       // without ZooKeeper, Redis, and leasenode with its log in files
)

// start starts fresh clusters. The function that it returns stops them, and has to be called
// whether or not there is an error.
func (b *benchmark) start(ctx context.Context, f field) (cells.Clusters, func() error, error) {
	b.clusters++
	home := peer.Home{Dir: fmt.Sprintf("%s/%d", b.dir, b.clusters), Ports: &b.ports}
	var clusters cells.Clusters
	var started []*peer.Cluster
	stop := func() (err error) {
		for _, cluster := range started {
			err = errors.Join(err, cluster.Close())
		}
		return errors.Join(err, os.RemoveAll(home.Dir))
	}
	for _, system := range []struct {
		name  string
		into  **peer.Cluster
		extra bool
		start func() (*peer.Cluster, error)
	}{
		{"etcd", &clusters.Etcd, false, func() (*peer.Cluster, error) { return peer.StartEtcd(ctx, home) }},
		{"leasenode", &clusters.Leasenode, false, func() (*peer.Cluster, error) { return b.startLeasenode(ctx, home, "bolt") }},
		{"leasenode, wal", &clusters.LeasenodeWAL, true, func() (*peer.Cluster, error) { return b.startLeasenode(ctx, home, "wal") }},
		{"ZooKeeper", &clusters.ZooKeeper, true, func() (*peer.Cluster, error) { return peer.StartZooKeeper(ctx, home) }},
		{"Redis", &clusters.Redis, true, func() (*peer.Cluster, error) { return peer.StartRedis(ctx, home) }},
	} {
		if system.extra && f == onlyCounted {
			continue
		}
		b.progress("start " + system.name)
		cluster, err := system.start()
		if system.extra && errors.Is(err, peer.ErrNotInstalled) {
			b.versions[system.name] = cells.NotInstalled
			b.progress("    " + err.Error())
			continue
		}
		if err != nil {
			return clusters, stop, err
		}
		*system.into = cluster
		started = append(started, cluster)
		b.versions[system.name] = cluster.Version()
	}
	return clusters, stop, nil
}

func (b *benchmark) startLeasenode(ctx context.Context, home peer.Home, logStore string) (*peer.Cluster, error) {
	return peer.StartLeasenode(ctx, home, peer.Leasenode{Binary: b.config.leasenode, LogStore: logStore})
}
