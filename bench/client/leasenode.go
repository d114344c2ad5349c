package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// Leasenode is a session with leasenode. Its methods are safe for concurrent use.
type Leasenode struct {
	clients []*holder.Client
	keys    *keys
}

// DialLeasenode makes a session of so many clients.
func DialLeasenode(addrs []string, clients int) (*Leasenode, error) {
	l := &Leasenode{keys: newKeys()}
	for range clients {
		client, err := holder.Dial(addrs)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.clients = append(l.clients, client)
	}
	return l, nil
}

// Close ends the session.
func (l *Leasenode) Close() error {
	var err error
	for _, client := range l.clients {
		err = errors.Join(err, client.Close())
	}
	return err
}

func (l *Leasenode) of(caller int) *holder.Client { return l.clients[caller%len(l.clients)] }

func (l *Leasenode) acquire(ctx context.Context, caller int) (lease.Record, error) {
	answer, err := l.of(caller).Acquire(ctx, lease.AcquireRequest{Key: l.keys.next(), Owner: owner(caller), TTL: ttl})
	return answer.Record, err
}

// Acquire acquires distinct keys, which are put into the pool.
func (l *Leasenode) Acquire(pool *Pool[lease.Record]) measure.Call {
	return func(ctx context.Context, caller int) error {
		record, err := l.acquire(ctx, caller)
		if err == nil {
			pool.Put(record)
		}
		return err
	}
}

// Release releases what is in the pool.
func (l *Leasenode) Release(pool *Pool[lease.Record]) measure.Call {
	return func(ctx context.Context, caller int) error {
		record, ok := pool.Take()
		if !ok {
			return measure.ErrDry
		}
		_, err := l.of(caller).Release(ctx, lease.ReleaseRequest{Key: record.Key, Owner: record.Owner, Epoch: record.Epoch})
		return err
	}
}

// Renew acquires a key for each caller, and renews it with one call each time.
func (l *Leasenode) Renew(ctx context.Context, callers int) (measure.Call, error) {
	records, err := l.prepare(ctx, callers, callers)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, caller int) error {
		_, err := l.of(caller).Renew(ctx, renewal(records[caller]))
		return err
	}, nil
}

func renewal(r lease.Record) lease.RenewRequest {
	return lease.RenewRequest{Key: r.Key, Owner: r.Owner, Epoch: r.Epoch, TTL: ttl}
}

// BatchRenew acquires as many keys for each caller as fit into one BatchRenew, and renews
// all of them in one call each time.
func (l *Leasenode) BatchRenew(ctx context.Context, callers int) (measure.Call, error) {
	const preparers = 128
	records, err := l.prepare(ctx, preparers, callers*lease.MaxBatchRenew)
	if err != nil {
		return nil, err
	}
	batches := make([][]lease.RenewRequest, callers)
	for i, record := range records {
		batches[i%callers] = append(batches[i%callers], renewal(record))
	}
	return func(ctx context.Context, caller int) error {
		outcomes, err := l.of(caller).BatchRenew(ctx, batches[caller])
		for _, outcome := range outcomes {
			err = errors.Join(err, outcome.Err)
		}
		return err
	}, nil
}

// Get reads a held key of each caller's own, linearizably.
func (l *Leasenode) Get(ctx context.Context, callers int) (measure.Call, error) {
	records, err := l.prepare(ctx, callers, callers)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, caller int) error {
		answer, err := l.of(caller).Get(ctx, lease.GetRequest{Key: records[caller].Key})
		if err == nil && answer.Record.Epoch != records[caller].Epoch {
			err = fmt.Errorf("read %q: epoch %d instead of %d", records[caller].Key, answer.Record.Epoch, records[caller].Epoch)
		}
		return err
	}, nil
}

// Write acquires a key for each caller, and writes to it, in tries that are given up early,
// each time.
func (l *Leasenode) Write(ctx context.Context, callers int) (measure.Call, error) {
	renew, err := l.Renew(ctx, callers)
	if err != nil {
		return nil, err
	}
	return impatient(renew), nil
}

// impatient bounds a call by writeTimeout.
func impatient(call measure.Call) measure.Call {
	return func(ctx context.Context, caller int) error {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		return call(ctx, caller)
	}
}

// prepare acquires n keys with so many callers.
func (l *Leasenode) prepare(ctx context.Context, callers, n int) ([]lease.Record, error) {
	return prepared(ctx, callers, n, l.acquire)
}

// prepared makes n items with so many callers; the caller of item i is i modulo callers.
func prepared[T any](ctx context.Context, callers, n int, makeOne func(ctx context.Context, caller int) (T, error)) ([]T, error) {
	items, faults := make([]T, n), make([]error, callers)
	var making sync.WaitGroup
	for caller := range callers {
		making.Go(func() {
			for i := caller; i < n && faults[caller] == nil; i += callers {
				items[i], faults[caller] = makeOne(ctx, caller)
			}
		})
	}
	making.Wait()
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("prepare %d keys: %w", n, err)
	}
	return items, nil
}
