package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

const benchOwner = "leasenode-bench"

// bench is one run of the bench command against one cluster.
type bench struct {
	cluster cluster
	plan    benchPlan
	prefix  string
	made    atomic.Int64 // keys named so far
}

func newBench(c cluster, plan benchPlan) *bench {
	return &bench{cluster: c, plan: plan, prefix: "bench-" + rand.Text()[:10] + "/"}
}

// measure prepares what op needs, unmeasured, and then measures it.
func (b *bench) measure(ctx context.Context, op string) (*measurement, error) {
	limit := load{clients: b.plan.clients, duration: b.plan.duration, count: b.plan.count}
	if op == "acquire" {
		limit.request = func(ctx context.Context, _ int) error { _, err := b.acquire(ctx); return err }
		return limit.run(ctx), nil
	}
	if op == "handover" {
		return b.handovers(ctx), nil
	}
	keys := b.plan.keys
	if op == "release" {
		keys = max(keys, b.plan.count)
	}
	leases, err := b.prepare(ctx, keys)
	if err != nil {
		return nil, err
	}
	if op == "release" && (limit.count == 0 || limit.count > keys) {
		limit.count = keys
	}
	limit.request = func(ctx context.Context, i int) error { return b.use(ctx, op, leases[i%keys]) }
	return limit.run(ctx), nil
}

// prepare acquires n keys.
func (b *bench) prepare(ctx context.Context, n int) ([]lease.Record, error) {
	leases := make([]lease.Record, n)
	preparation := load{clients: b.plan.clients, count: n, request: func(ctx context.Context, i int) (err error) {
		leases[i], err = b.acquire(ctx)
		return err
	}}
	m := preparation.run(ctx)
	if m.firstError != nil {
		return nil, m.firstError
	}
	return leases, ctx.Err()
}

func (b *bench) acquire(ctx context.Context) (lease.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, b.plan.timeout)
	defer cancel()
	answer, err := b.cluster.Acquire(ctx, lease.AcquireRequest{
		Key: fmt.Sprintf("%s%d", b.prefix, b.made.Add(1)), Owner: benchOwner, TTL: b.plan.ttl, RequestID: rand.Text(),
	})
	return answer.Record, settled(err)
}

func (b *bench) use(ctx context.Context, op string, r lease.Record) error {
	ctx, cancel := context.WithTimeout(ctx, b.plan.timeout)
	defer cancel()
	var err error
	switch op {
	case "renew":
		_, err = b.cluster.Renew(ctx, lease.RenewRequest{Key: r.Key, Owner: r.Owner, Epoch: r.Epoch, TTL: b.plan.ttl})
	case "release":
		_, err = b.cluster.Release(ctx, lease.ReleaseRequest{Key: r.Key, Owner: r.Owner, Epoch: r.Epoch})
	case "get":
		_, err = b.cluster.Get(ctx, lease.GetRequest{Key: r.Key, Consistency: b.plan.consistency})
	}
	return settled(err)
}

// load is requests sent by a number of clients, each as soon as its last one was
// answered, until a count or a time is reached or the context ends.
type load struct {
	clients  int
	count    int           // 0: no limit
	duration time.Duration // 0: no limit
	// request sends the i-th request; i counts from 0 over all clients.
	request func(ctx context.Context, i int) error
}

// run returns when the last client is done. A request that was cut short by the
// end of the time is waited for and counted; one cut short by the end of ctx is not.
func (l load) run(ctx context.Context) *measurement {
	var next atomic.Int64
	var clients sync.WaitGroup
	parts := make([]*measurement, l.clients)
	start := time.Now()
	for i := range parts {
		part := newMeasurement()
		parts[i] = part
		clients.Go(func() {
			for ctx.Err() == nil && (l.duration == 0 || time.Since(start) < l.duration) {
				n := int(next.Add(1)) - 1
				if l.count > 0 && n >= l.count {
					return
				}
				sent := time.Now()
				err := l.request(ctx, n)
				if ctx.Err() == nil {
					part.add(time.Since(sent), err)
				}
			}
		})
	}
	clients.Wait()
	whole := newMeasurement()
	whole.elapsed = time.Since(start)
	for _, part := range parts {
		whole.join(part)
	}
	return whole
}

// measurement is what came of a load.
type measurement struct {
	elapsed    time.Duration
	latencies  histogram      // of the requests that were done
	errors     map[string]int // by reason, of those that were not
	firstError error
}

func newMeasurement() *measurement { return &measurement{errors: map[string]int{}} }

func (m *measurement) add(took time.Duration, err error) {
	if err == nil {
		m.latencies.add(took)
		return
	}
	m.errors[failureOf(err, "").Reason]++
	if m.firstError == nil {
		m.firstError = err
	}
}

func (m *measurement) join(other *measurement) {
	m.latencies.join(&other.latencies)
	for reason, n := range other.errors {
		m.errors[reason] += n
	}
	if m.firstError == nil {
		m.firstError = other.firstError
	}
}
