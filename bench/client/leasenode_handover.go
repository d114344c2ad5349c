package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/lease"
)

// WaitingNote says in what way the waiters of leasenode wait; see [acquireInTurn].
const WaitingNote = "polling until waiting lands"

// pollPause is between two tries of a waiter, give or take half of it.
const pollPause = 50 * time.Millisecond

var errTwoHolders = errors.New("two hold the key")

// acquireInTurn acquires a key that others hold and wait for. It is the one place that
// knows how: once the store lets a caller wait in line, it is a single call with a wait.
func acquireInTurn(ctx context.Context, store lease.Store, req lease.AcquireRequest) (lease.Answer, error) {
	for {
		answer, err := store.Acquire(ctx, req)
		if _, held := errors.AsType[*lease.HeldError](err); !held {
			return answer, err
		}
		if !peer.Pause(ctx, pollPause/2+rand.N(pollPause)) {
			return lease.Answer{}, context.Cause(ctx)
		}
	}
}

// Handover has all callers take turns at one key. Each load needs a new one, since what
// was cut off may still hold the key.
func (l *Leasenode) Handover() measure.Call {
	key := l.keys.next()
	var holders atomic.Int64
	return func(ctx context.Context, caller int) error {
		client := l.of(caller)
		answer, err := acquireInTurn(ctx, client, lease.AcquireRequest{Key: key, Owner: owner(caller), TTL: ttl})
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
