package client

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// Filler is a session that can fill a system with leases and see whether a member has
// caught up.
type Filler interface {
	// Fill acquires n keys with so many callers, each key with its own lease.
	Fill(ctx context.Context, callers, n int) error
	// Mark acquires one more key and returns it.
	Mark(ctx context.Context) (string, error)
	// Has reports whether the member at addr has the key, asking it alone and for what
	// it has, however stale. It fails while the member cannot be asked.
	Has(ctx context.Context, addr, key string) (bool, error)
	Close() error
}

var (
	_ Filler = (*Leasenode)(nil)
	_ Filler = (*Etcd)(nil)
)

// Fill implements [Filler].
func (l *Leasenode) Fill(ctx context.Context, callers, n int) error {
	_, err := l.prepare(ctx, callers, n)
	return err
}

// Mark implements [Filler].
func (l *Leasenode) Mark(ctx context.Context) (string, error) {
	record, err := l.acquire(ctx, 0)
	return record.Key, err
}

// Has implements [Filler].
func (l *Leasenode) Has(ctx context.Context, addr, key string) (bool, error) {
	client, err := holder.Dial([]string{addr}, holder.StayWithEndpoints())
	if err != nil {
		return false, err
	}
	defer func() { _ = client.Close() }()
	answer, err := client.Get(ctx, lease.GetRequest{Key: key, Consistency: lease.Stale})
	if err != nil {
		return false, fmt.Errorf("ask the node at %s: %w", addr, err)
	}
	return answer.Record.Epoch > 0, nil
}

// Fill implements [Filler].
func (e *Etcd) Fill(ctx context.Context, callers, n int) error {
	_, err := prepared(ctx, callers, n, e.acquire)
	return err
}

// Mark implements [Filler].
func (e *Etcd) Mark(ctx context.Context) (string, error) {
	owned, err := e.acquire(ctx, 0)
	return owned.Key, err
}

// Has implements [Filler].
func (e *Etcd) Has(ctx context.Context, addr, key string) (bool, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		return false, err
	}
	defer func() { _ = client.Close() }()
	answer, err := client.Get(ctx, key, clientv3.WithSerializable())
	if err != nil {
		return false, fmt.Errorf("ask the member at %s: %w", addr, err)
	}
	return len(answer.Kvs) == 1, nil
}
