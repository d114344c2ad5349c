package client

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/lease"
)

var errTwoHolders = errors.New("two hold the key")

// Handover has all callers take turns at one key. Each load needs a new one, since what
// was cut off may still hold the key.
func (l *Leasenode) Handover() measure.Call {
	key := l.keys.next()
	var holders atomic.Int64
	return func(ctx context.Context, caller int) error {
		client := l.of(caller)
		answer, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: owner(caller), TTL: ttl, Wait: lease.MaxWait})
		if err != nil {
			return err
		}
		if holders.Add(1) != 1 {
			err = errTwoHolders
		}
		holders.Add(-1)
		r := answer.Record
		_, failed := client.Release(context.WithoutCancel(ctx), lease.ReleaseRequest{Key: r.Key, Owner: r.Owner, Epoch: r.Epoch})
		return errors.Join(err, failed)
	}
}
