package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// handovers has owners wait in line for one key, each of whom gives it up as soon as it
// has it. A measurement is the time from one's asking for the release to the next one's
// knowing of its grant.
func (b *bench) handovers(ctx context.Context) *measurement {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if b.plan.duration > 0 {
		time.AfterFunc(b.plan.duration, cancel)
	}
	key := b.prefix + "handover"
	began := time.Now()
	var released atomic.Int64 // when the present release was asked for, since began; 0 before the first
	var granted atomic.Int64
	parts := make([]*measurement, b.plan.waiters)
	owners := load{clients: b.plan.waiters, count: b.plan.waiters, request: func(_ context.Context, i int) error {
		part := newMeasurement()
		parts[i] = part
		for ctx.Err() == nil {
			wait := min(lease.MaxWait, max(b.plan.duration, b.plan.timeout))
			req := lease.AcquireRequest{Key: key, Owner: fmt.Sprintf("%s-%d", benchOwner, i), TTL: b.plan.ttl, RequestID: rand.Text(), Wait: wait}
			answer, err := b.cluster.Acquire(ctx, req)
			if ctx.Err() != nil {
				return nil
			}
			if since := released.Load(); err != nil {
				part.add(0, settled(err))
				continue
			} else if since > 0 {
				part.add(max(0, time.Since(began)-time.Duration(since)), nil)
			}
			if n := granted.Add(1); b.plan.count > 0 && n >= int64(b.plan.count) {
				cancel()
				return nil
			}
			released.Store(int64(time.Since(began)) + 1)
			if err := b.use(context.WithoutCancel(ctx), "release", lease.Record{Key: key, Owner: req.Owner, Epoch: answer.Record.Epoch}); err != nil {
				part.add(0, err)
			}
		}
		return nil
	}}
	owners.run(context.WithoutCancel(ctx))
	whole := newMeasurement()
	whole.elapsed = time.Since(began)
	for _, part := range parts {
		whole.join(part)
	}
	return whole
}
