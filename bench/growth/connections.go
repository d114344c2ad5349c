package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/leasenode/leasenode/bench/growth/observe"
	"github.com/leasenode/leasenode/bench/growth/series"
	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

const (
	// renewEvery is how often each connection renews its one lease.
	renewEvery = 10 * time.Second
	// connectors make connections at the same time.
	connectors = 64
	// filesBeside are files that are open beside the connections.
	filesBeside = 1_000
)

func connectionsColumns() []string {
	all := []string{"connections", "connect_s", "renewals_per_s", "renewals_failed", "renew_p50_ms", "renew_p99_ms"}
	for node := range nodes {
		all = append(all, observe.Columns(node)...)
	}
	return all
}

// connections keeps connections open, one number of --sizes after the other, each of a
// client of its own that keeps a lease, and measures beside them.
func connections(ctx context.Context, c config) error {
	sizes := c.sizes.or(1, 100, 1_000, 10_000)
	if err := allowFiles(uint64(sizes[len(sizes)-1] + filesBeside)); err != nil {
		return err
	}
	return c.withSeries(ctx, "connections", connectionsColumns(), func(cluster *peer.Cluster, out *series.Writer) error {
		leader, err := cluster.Leader(ctx)
		if err != nil {
			return err
		}
		// The leader is asked first, so that each client has one connection.
		addrs := cluster.Addrs()
		k := &keepers{addrs: append(slices.Clone(addrs[leader:]), addrs[:leader]...)}
		defer k.close()
		for _, size := range sizes {
			row, err := k.look(ctx, cluster, size)
			if err != nil {
				return fmt.Errorf("with %d connections: %w", size, err)
			}
			if err := out.Add(row); err != nil {
				return err
			}
			c.progress("%6d connections after %.1f s; %.0f renewals/s; renew beside them %.2f ms, p99 %.2f ms; n1 has %.0f MiB", size, row[1], row[2], row[4], row[5], row[6])
		}
		return nil
	})
}

// allowFiles has this process, and those that it starts, have so many files open.
func allowFiles(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("ask how many files can be open: %w", err)
	}
	if limit.Max < n {
		return fmt.Errorf("%d files have to be open, and the system allows %d (ulimit -Hn)", n, limit.Max)
	}
	limit.Cur = max(limit.Cur, n)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("have %d files open: %w", n, err)
	}
	return nil
}

// keepers are clients that each keep a lease.
type keepers struct {
	addrs    []string
	clients  []*holder.Client
	cancels  []context.CancelFunc
	joined   sync.WaitGroup
	recorder recorder
}

func (k *keepers) close() {
	for _, cancel := range k.cancels {
		cancel()
	}
	k.joined.Wait()
	for _, client := range k.clients {
		_ = client.Close() // the run is over
	}
}

// add makes keepers until there are so many.
func (k *keepers) add(ctx context.Context, size int) error {
	ctx, cancel := context.WithCancel(ctx)
	k.cancels = append(k.cancels, cancel)
	from := len(k.clients)
	k.clients = append(k.clients, make([]*holder.Client, size-from)...)
	failed := make([]error, connectors)
	var making sync.WaitGroup
	for maker := range connectors {
		making.Go(func() {
			for n := from + maker; n < size && failed[maker] == nil; n += connectors {
				failed[maker] = k.keep(ctx, n)
			}
		})
	}
	making.Wait()
	return errors.Join(failed...)
}

// keep has client n acquire a lease and renew it from then on.
func (k *keepers) keep(ctx context.Context, n int) error {
	client, err := holder.Dial(k.addrs)
	if err != nil {
		return err
	}
	k.clients[n] = client
	answer, err := client.Acquire(ctx, lease.AcquireRequest{Key: fmt.Sprintf("kept/%d", n), Owner: "keeper", TTL: 4 * renewEvery})
	if err != nil {
		return err
	}
	renewal := lease.RenewRequest{Key: answer.Record.Key, Owner: "keeper", Epoch: answer.Record.Epoch, TTL: 4 * renewEvery}
	k.joined.Go(func() {
		for peer.Pause(ctx, renewEvery) {
			_ = k.recorder.do(renewals, func() error { // it is recorded
				_, err := client.Renew(ctx, renewal)
				return err
			})
		}
	})
	return nil
}

// look has so many connections, and returns the row for it.
func (k *keepers) look(ctx context.Context, cluster *peer.Cluster, size int) ([]float64, error) {
	began := time.Now()
	if err := k.add(ctx, size); err != nil {
		return nil, err
	}
	row := []float64{float64(size), time.Since(began).Seconds()}
	peer.Pause(ctx, renewEvery) // so that each has renewed
	_ = k.recorder.row(renewEvery)
	beside, err := k.beside(ctx)
	if err != nil {
		return nil, err
	}
	kept := k.recorder.row(probeWindow + time.Second)
	row = append(row, kept[3*int(renewals)], kept[len(kept)-1], milliseconds(beside.P50), milliseconds(beside.P99))
	for node := range nodes {
		n, err := observe.Look(ctx, cluster.Data()[node], cluster.Metrics()[node])
		if err != nil {
			return nil, err
		}
		row = append(row, n.Row()...)
	}
	return row, nil
}

// beside measures renewals of some callers that share a client.
func (k *keepers) beside(ctx context.Context) (measure.Result, error) {
	client, err := holder.Dial(k.addrs)
	if err != nil {
		return measure.Result{}, err
	}
	f := &filled{clients: []*holder.Client{client}}
	defer func() { _ = f.close() }() // what it measured is there
	renewed, _, err := f.probe(ctx)
	return renewed, err
}
