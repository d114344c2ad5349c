package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// What the load of churn is made of.
const (
	churnCallers = 128
	churnClients = 4
	churnKeys    = 20_000
	// heldTTL is of leases that are released, leftTTL of every leftEvery'th, which is
	// left to end.
	heldTTL, leftTTL = 30 * time.Second, 500 * time.Millisecond
	leftEvery        = 16
	renewsPerLease   = 2
	// keptLeases are renewed in one call every keptPause.
	keptLeases, keptPause = lease.MaxBatchRenew, 5 * time.Second
	churnWatchers         = 10
	getPause              = 10 * time.Millisecond
)

// churnLoad is work of all kinds at full rate: callers that acquire, renew and release
// keys, each time under a new name, and leave some to end; leases that are kept by
// BatchRenew; reads; and watchers.
type churnLoad struct {
	addrs    []string
	recorder recorder
	events   atomic.Int64
	names    atomic.Int64
}

// failed is how many operations have failed since the last look.
func (l *churnLoad) failed() int {
	l.recorder.mu.Lock()
	defer l.recorder.mu.Unlock()
	return l.recorder.failures
}

// run works until ctx ends.
func (l *churnLoad) run(ctx context.Context) (err error) {
	var clients []*holder.Client
	defer func() {
		for _, client := range clients {
			err = errors.Join(err, client.Close())
		}
	}()
	for range churnClients {
		client, err := holder.Dial(l.addrs)
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	var work sync.WaitGroup
	for caller := range churnCallers {
		work.Go(func() { l.callerLoop(ctx, clients[caller%churnClients], caller) })
	}
	for watcher := range churnWatchers {
		work.Go(func() { l.watchLoop(ctx, clients[watcher%churnClients], watcher) })
	}
	work.Go(func() { l.readLoop(ctx, clients[0]) })
	keeping := l.keepLoop(ctx, clients[1])
	work.Wait()
	return keeping
}

func churnKey(n int) string { return fmt.Sprintf("churn/%d", n%churnKeys) }

// callerLoop takes the caller's share of the keys in turns.
func (l *churnLoad) callerLoop(ctx context.Context, client *holder.Client, caller int) {
	for n := 0; ctx.Err() == nil; n++ {
		if err := l.cycle(ctx, client, churnKey(n*churnCallers+caller), n%leftEvery == 0); err != nil {
			peer.Pause(ctx, getPause)
		}
	}
}

// cycle is one lease of a key.
func (l *churnLoad) cycle(ctx context.Context, client *holder.Client, key string, leave bool) error {
	ttl := heldTTL
	if leave {
		ttl = leftTTL
	}
	var held lease.Record
	owner := fmt.Sprintf("owner-%d", l.names.Add(1))
	err := l.do(ctx, acquires, func() error {
		answer, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: owner, TTL: ttl})
		held = answer.Record
		return err
	})
	if err != nil || leave {
		return err
	}
	for range renewsPerLease {
		err = errors.Join(err, l.do(ctx, renewals, func() error {
			_, err := client.Renew(ctx, lease.RenewRequest{Key: key, Owner: owner, Epoch: held.Epoch, TTL: ttl})
			return err
		}))
	}
	return errors.Join(err, l.do(ctx, releases, func() error {
		_, err := client.Release(ctx, lease.ReleaseRequest{Key: key, Owner: owner, Epoch: held.Epoch})
		return err
	}))
}

// do does and records an operation, unless the run is over: what was cut off then says
// nothing.
func (l *churnLoad) do(ctx context.Context, k kind, operation func() error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.recorder.do(k, func() error {
		if err := operation(); ctx.Err() == nil {
			return err
		}
		return nil
	})
}

// keepLoop keeps leases with BatchRenew. It fails if one of them is lost.
func (l *churnLoad) keepLoop(ctx context.Context, client *holder.Client) error {
	var batch []lease.RenewRequest
	for n := range keptLeases {
		answer, err := client.Acquire(ctx, lease.AcquireRequest{Key: fmt.Sprintf("kept/%d", n), Owner: "keeper", TTL: lease.MaxTTL})
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		batch = append(batch, lease.RenewRequest{Key: answer.Record.Key, Owner: answer.Record.Owner, Epoch: answer.Record.Epoch, TTL: heldTTL})
	}
	for peer.Pause(ctx, keptPause) {
		outcomes, err := client.BatchRenew(ctx, batch)
		for _, outcome := range outcomes {
			err = errors.Join(err, outcome.Err)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, lease.ErrUnavailable) && !errors.Is(err, lease.ErrOutcomeUnknown) {
			return fmt.Errorf("keep %d leases: %w", keptLeases, err)
		}
	}
	return nil
}

func (l *churnLoad) readLoop(ctx context.Context, client *holder.Client) {
	for n := 0; peer.Pause(ctx, getPause); n++ {
		_ = l.do(ctx, gets, func() error { // it is recorded
			_, err := client.Get(ctx, lease.GetRequest{Key: churnKey(n)})
			return err
		})
	}
}

// watchLoop watches one key, or a tenth of all.
func (l *churnLoad) watchLoop(ctx context.Context, client *holder.Client, watcher int) {
	request := lease.WatchRequest{Key: churnKey(watcher)}
	if watcher%2 == 0 {
		request = lease.WatchRequest{Prefix: fmt.Sprintf("churn/%d", watcher)}
	}
	for ctx.Err() == nil {
		for update, err := range client.Watch(ctx, request) {
			if err != nil {
				break
			}
			l.events.Add(int64(len(update.Events)))
		}
		peer.Pause(ctx, getPause)
	}
}

// loadAverage is the machine's, of the last minute; 0 if the system does not tell.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return v
}
