package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasenode/leasenode/bench/growth/series"
	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// historySteps is how often keys are renewed in a row before each look. In all it is more
// than a cluster remembers of renewals, a million.
const (
	historyKeys  = 2_000
	historySteps = 64
	historyLooks = 12
)

// history renews keys again and again, until their histories are full and beyond, and
// looks at what that costs.
func history(ctx context.Context, c config) error {
	columns := []string{"renewals", "entries", "renew_per_s", "renew_p50_ms", "state_mib", "resident_mib"}
	return c.withSeries(ctx, "history", columns, func(cluster *peer.Cluster, out *series.Writer) (err error) {
		client, err := holder.Dial(cluster.Addrs())
		if err != nil {
			return err
		}
		f := &filled{cluster: cluster, clients: []*holder.Client{client}}
		defer func() { err = errors.Join(err, f.close()) }()
		if err := f.fill(ctx, historyKeys); err != nil {
			return err
		}
		for look := range historyLooks {
			row, err := f.renewAll(ctx, look)
			if err != nil {
				return err
			}
			if err := out.Add(row); err != nil {
				return err
			}
			c.progress("%4.0f renewals of each key: %.0f entries kept, %.0f renewals/s, state file %.1f MiB", row[0], row[1], row[2], row[4])
		}
		return nil
	})
}

// renewAll renews every key some times.
func (f *filled) renewAll(ctx context.Context, look int) ([]float64, error) {
	const all = historyKeys * historySteps
	next := make(chan int, all)
	for n := range all {
		next <- n % historyKeys
	}
	began := time.Now()
	load := measure.Load{Clients: 128, Window: time.Hour} // it ends with the keys
	result, err := load.Run(ctx, func(ctx context.Context, caller int) error {
		select {
		case n := <-next:
			_, err := f.client(caller).Renew(ctx, lease.RenewRequest{Key: fmt.Sprintf("tenants/%08d", n), Owner: "owner-1", Epoch: 1, TTL: lease.MaxTTL})
			return err
		default:
			return measure.ErrDry
		}
	})
	if err != nil {
		return nil, err
	}
	rate := all / time.Since(began).Seconds()
	page, err := f.client(0).History(ctx, lease.HistoryRequest{Key: "tenants/00000000", PageSize: lease.MaxPageSize})
	if err != nil {
		return nil, err
	}
	looks, err := f.observe(ctx)
	if err != nil {
		return nil, err
	}
	const resident, state = 0, 5 // of the first node
	return []float64{float64((look + 1) * historySteps), float64(len(page.Entries)), rate, milliseconds(result.P50), looks[state], looks[resident]}, nil
}
