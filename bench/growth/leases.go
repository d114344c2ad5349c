package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/bench/growth/observe"
	"github.com/leasenode/leasenode/bench/growth/series"
	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// How leases are filled in, and what is measured beside them.
const (
	fillCallers  = 256
	fillClients  = 4
	probeCallers = 16
	probeWindow  = 5 * time.Second
	settleTime   = 3 * time.Second
	// missedWrites are acquired while a node is down.
	missedWrites = 5_000
)

func leasesColumns() []string {
	all := []string{"leases", "fill_s", "fill_per_s", "renew_p50_ms", "renew_p99_ms", "get_p50_ms", "get_p99_ms", "list_s", "leader_back_s", "follower_back_s"}
	for node := range nodes {
		all = append(all, observe.Columns(node)...)
	}
	return all
}

// leases fills in leases, one number of --sizes after the other, on one cluster.
func leases(ctx context.Context, c config) error {
	return c.withSeries(ctx, "leases", leasesColumns(), func(cluster *peer.Cluster, out *series.Writer) (err error) {
		f := &filled{cluster: cluster}
		defer func() { err = errors.Join(err, f.close()) }()
		for range fillClients {
			client, err := holder.Dial(cluster.Addrs())
			if err != nil {
				return err
			}
			f.clients = append(f.clients, client)
		}
		for _, size := range c.sizes.or(1_000, 100_000, 1_000_000) {
			row, err := f.look(ctx, size)
			if err != nil {
				return fmt.Errorf("at %d leases: %w", size, err)
			}
			if err := out.Add(row); err != nil {
				return err
			}
			c.progress("%9d leases after %.1f s; renew %.2f ms; list %.1f s; leader back in %.2f s, follower in %.2f s; n1 has %.0f MiB",
				size, row[1], row[3], row[7], row[8], row[9], row[10])
		}
		return nil
	})
}

// filled is a cluster that is filled with leases.
type filled struct {
	cluster *peer.Cluster
	clients []*holder.Client
	count   int
}

func (f *filled) close() (err error) {
	for _, client := range f.clients {
		err = errors.Join(err, client.Close())
	}
	return err
}

func (f *filled) client(caller int) *holder.Client { return f.clients[caller%len(f.clients)] }

// fill acquires keys until there are so many leases.
func (f *filled) fill(ctx context.Context, size int) error {
	from := f.count
	f.count = max(size, from)
	failed := make([]error, fillCallers)
	var callers sync.WaitGroup
	for caller := range fillCallers {
		callers.Go(func() {
			for n := from + caller; n < size && failed[caller] == nil; n += fillCallers {
				_, failed[caller] = f.client(caller).Acquire(ctx, lease.AcquireRequest{Key: fmt.Sprintf("tenants/%08d", n), Owner: "owner-1", TTL: lease.MaxTTL})
			}
		})
	}
	callers.Wait()
	return errors.Join(failed...)
}

// look fills up to size and returns the row for it.
func (f *filled) look(ctx context.Context, size int) ([]float64, error) {
	began, before := time.Now(), f.count
	if err := f.fill(ctx, size); err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	row := []float64{float64(size), took, float64(f.count-before) / took}
	renewed, read, err := f.probe(ctx)
	if err != nil {
		return nil, err
	}
	row = append(row, milliseconds(renewed.P50), milliseconds(renewed.P99), milliseconds(read.P50), milliseconds(read.P99))
	began = time.Now()
	if err := f.list(ctx); err != nil {
		return nil, err
	}
	row = append(row, time.Since(began).Seconds())
	looks, err := f.observe(ctx)
	if err != nil {
		return nil, err
	}
	leader, err := f.cluster.Leader(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range []int{leader, (leader + 1) % nodes} {
		took, err := f.bounce(ctx, node)
		if err != nil {
			return nil, err
		}
		row = append(row, took.Seconds())
	}
	return append(row, looks...), nil
}

// observe looks at all nodes once they have settled.
func (f *filled) observe(ctx context.Context) (row []float64, err error) {
	peer.Pause(ctx, settleTime)
	for node := range nodes {
		n, err := observe.Look(ctx, f.cluster.Data()[node], f.cluster.Metrics()[node])
		if err != nil {
			return nil, err
		}
		row = append(row, n.Row()...)
	}
	return row, nil
}

// probe measures renewing and reading leases of its own.
func (f *filled) probe(ctx context.Context) (renewed, read measure.Result, err error) {
	held := make([]lease.Record, probeCallers)
	for caller := range held {
		answer, err := f.client(caller).Acquire(ctx, lease.AcquireRequest{Key: fmt.Sprintf("probe/%d", caller), Owner: "prober", TTL: lease.MaxTTL})
		if err != nil {
			return renewed, read, err
		}
		held[caller] = answer.Record
	}
	load := measure.Load{Clients: probeCallers, Warm: time.Second, Window: probeWindow}
	renewed, err = load.Run(ctx, func(ctx context.Context, caller int) error {
		_, err := f.client(caller).Renew(ctx, lease.RenewRequest{Key: held[caller].Key, Owner: "prober", Epoch: held[caller].Epoch, TTL: lease.MaxTTL})
		return err
	})
	if err != nil {
		return renewed, read, err
	}
	read, err = load.Run(ctx, func(ctx context.Context, caller int) error {
		_, err := f.client(caller).Get(ctx, lease.GetRequest{Key: held[caller].Key})
		return err
	})
	for _, r := range held { // the next look takes the same keys
		_, released := f.client(0).Release(ctx, lease.ReleaseRequest{Key: r.Key, Owner: r.Owner, Epoch: r.Epoch})
		err = errors.Join(err, released)
	}
	return renewed, read, err
}

// list lists all leases.
func (f *filled) list(ctx context.Context) error {
	request := lease.ListRequest{PageSize: lease.MaxPageSize}
	for {
		page, err := f.client(0).List(ctx, request)
		if err != nil || page.NextPageToken == "" {
			return err
		}
		request.PageToken = page.NextPageToken
	}
}

// bounce kills a node, has it miss writes, starts it again, and returns how long it then
// takes until it has all that the others have.
func (f *filled) bounce(ctx context.Context, node int) (time.Duration, error) {
	if err := f.cluster.Kill(node); err != nil {
		return 0, err
	}
	if err := f.fill(ctx, f.count+missedWrites); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := f.cluster.Restart(node); err != nil {
		return 0, err
	}
	err := f.cluster.AwaitReady(ctx) // which a node that is behind is not
	return time.Since(began), err
}
