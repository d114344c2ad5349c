package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasenode/leasenode/bench/measure"
)

// Etcd is a session with etcd. Its methods are safe for concurrent use.
type Etcd struct {
	clients []*clientv3.Client
	keys    *keys
}

// Owned is a key of etcd with the lease it is attached to.
type Owned struct {
	Key   string
	Lease clientv3.LeaseID
}

var (
	errHeld = errors.New("somebody else holds the key")
	errLost = errors.New("the key is not ours any more")
)

// DialEtcd makes a session of so many clients.
func DialEtcd(addrs []string, clients int) (*Etcd, error) {
	e := &Etcd{keys: newKeys()}
	for range clients {
		client, err := clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop()})
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.clients = append(e.clients, client)
	}
	return e, nil
}

// Close ends the session. Its leases stay until they are over.
func (e *Etcd) Close() error {
	var err error
	for _, client := range e.clients {
		err = errors.Join(err, client.Close())
	}
	return err
}

func (e *Etcd) of(caller int) *clientv3.Client { return e.clients[caller%len(e.clients)] }

// Acquire takes distinct keys, each with a lease of its own: Grant and one Txn.
func (e *Etcd) Acquire(pool *Pool[Owned]) measure.Call {
	return func(ctx context.Context, caller int) error {
		owned, err := e.acquire(ctx, caller)
		if err == nil {
			pool.Put(owned)
		}
		return err
	}
}

func (e *Etcd) acquire(ctx context.Context, caller int) (Owned, error) {
	granted, err := e.of(caller).Grant(ctx, int64(ttl/time.Second))
	if err != nil {
		return Owned{}, err
	}
	owned := Owned{Key: e.keys.next(), Lease: granted.ID}
	return owned, e.take(ctx, caller, owned)
}

// take puts a key that must not be there.
func (e *Etcd) take(ctx context.Context, caller int, owned Owned) error {
	return e.commit(ctx, caller, errHeld,
		clientv3.Compare(clientv3.CreateRevision(owned.Key), "=", 0),
		clientv3.OpPut(owned.Key, owner(caller), clientv3.WithLease(owned.Lease)))
}

// commit does op in one Txn if the comparison holds; refused is the error if not.
func (e *Etcd) commit(ctx context.Context, caller int, refused error, comparison clientv3.Cmp, op clientv3.Op) error {
	answer, err := e.of(caller).Txn(ctx).If(comparison).Then(op).Commit()
	if err == nil && !answer.Succeeded {
		err = refused
	}
	return err
}

// AcquireShared takes distinct keys with one Txn each, on one lease for each client.
func (e *Etcd) AcquireShared(ctx context.Context, pool *Pool[Owned]) (measure.Call, error) {
	leases := make([]clientv3.LeaseID, len(e.clients))
	for i, client := range e.clients {
		granted, err := client.Grant(ctx, int64(ttl/time.Second))
		if err != nil {
			return nil, fmt.Errorf("grant a lease for many keys: %w", err)
		}
		leases[i] = granted.ID
	}
	return func(ctx context.Context, caller int) error {
		owned := Owned{Key: e.keys.next(), Lease: leases[caller%len(leases)]}
		err := e.take(ctx, caller, owned)
		if err == nil {
			pool.Put(owned)
		}
		return err
	}, nil
}

// Revoke releases keys that have a lease of their own.
func (e *Etcd) Revoke(pool *Pool[Owned]) measure.Call {
	return func(ctx context.Context, caller int) error {
		owned, ok := pool.Take()
		if !ok {
			return measure.ErrDry
		}
		_, err := e.of(caller).Revoke(ctx, owned.Lease)
		return err
	}
}

// Delete releases keys that share a lease: each is deleted if it is there.
func (e *Etcd) Delete(pool *Pool[Owned]) measure.Call {
	return func(ctx context.Context, caller int) error {
		owned, ok := pool.Take()
		if !ok {
			return measure.ErrDry
		}
		return e.commit(ctx, caller, errLost,
			clientv3.Compare(clientv3.CreateRevision(owned.Key), "!=", 0), clientv3.OpDelete(owned.Key))
	}
}

// Renew takes a key for each caller, and puts it again each time if it is still the
// caller's: a renewal that is durable, which KeepAlive is not.
func (e *Etcd) Renew(ctx context.Context, callers int) (measure.Call, error) {
	owned, err := prepared(ctx, callers, callers, e.acquire)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, caller int) error {
		key, own := owned[caller].Key, owner(caller)
		return e.commit(ctx, caller, errLost,
			clientv3.Compare(clientv3.Value(key), "=", own),
			clientv3.OpPut(key, own, clientv3.WithLease(owned[caller].Lease)))
	}, nil
}

// KeepAlive takes a key for each caller, and keeps its lease alive, which is not durable,
// each time.
func (e *Etcd) KeepAlive(ctx context.Context, callers int) (measure.Call, error) {
	owned, err := prepared(ctx, callers, callers, e.acquire)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, caller int) error {
		_, err := e.of(caller).KeepAliveOnce(ctx, owned[caller].Lease)
		return err
	}, nil
}

// Get reads a key of each caller's own, linearizably.
func (e *Etcd) Get(ctx context.Context, callers int) (measure.Call, error) {
	owned, err := prepared(ctx, callers, callers, e.acquire)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, caller int) error {
		answer, err := e.of(caller).Get(ctx, owned[caller].Key)
		if err == nil && len(answer.Kvs) != 1 {
			err = errLost
		}
		return err
	}, nil
}

// Write puts a key of each caller's own, in tries that are given up early, each time.
func (e *Etcd) Write(_ context.Context, callers int) (measure.Call, error) {
	keys := make([]string, callers)
	for i := range keys {
		keys[i] = e.keys.next()
	}
	return impatient(func(ctx context.Context, caller int) error {
		_, err := e.of(caller).Put(ctx, keys[caller], owner(caller))
		return err
	}), nil
}
