package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/leasenode/leasenode/bench/measure"
)

// EtcdWaiters are callers with a session of etcd's concurrency package each.
type EtcdWaiters struct {
	etcd     *Etcd
	sessions []*concurrency.Session
}

// Waiters makes n of them. Their sessions end with the clients.
func (e *Etcd) Waiters(ctx context.Context, n int) (*EtcdWaiters, error) {
	sessions, err := prepared(ctx, min(n, 64), n, func(ctx context.Context, caller int) (*concurrency.Session, error) {
		granted, err := e.of(caller).Grant(ctx, int64(ttl/time.Second))
		if err != nil {
			return nil, err
		}
		return concurrency.NewSession(e.of(caller), concurrency.WithLease(granted.ID))
	})
	if err != nil {
		return nil, fmt.Errorf("make %d waiters: %w", n, err)
	}
	return &EtcdWaiters{etcd: e, sessions: sessions}, nil
}

// Handover has all callers take turns at one mutex. Each load needs a new one, since what
// was cut off may still hold it.
func (w *EtcdWaiters) Handover() measure.Call {
	prefix := w.etcd.keys.next()
	mutexes := make([]*concurrency.Mutex, len(w.sessions))
	for i, session := range w.sessions {
		mutexes[i] = concurrency.NewMutex(session, prefix+"/")
	}
	var holders atomic.Int64
	return func(ctx context.Context, caller int) error {
		mutex := mutexes[caller]
		if err := mutex.Lock(ctx); err != nil {
			return err
		}
		var err error
		if holders.Add(1) != 1 {
			err = errTwoHolders
		}
		holders.Add(-1)
		return errors.Join(err, mutex.Unlock(context.WithoutCancel(ctx)))
	}
}
