package client

import (
	"context"
	"errors"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/resp"
)

// Redis is one connection to Redis for each caller.
type Redis struct {
	conns []*resp.Conn
	keys  *keys
}

// DialRedis makes the connections.
func DialRedis(ctx context.Context, addr string, callers int) (*Redis, error) {
	r := &Redis{keys: newKeys()}
	for range callers {
		conn, err := resp.Dial(ctx, addr)
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		r.conns = append(r.conns, conn)
	}
	return r, nil
}

// Close ends the connections.
func (r *Redis) Close() error {
	var err error
	for _, conn := range r.conns {
		err = errors.Join(err, conn.Close())
	}
	return err
}

// Acquire sets distinct keys.
func (r *Redis) Acquire() measure.Call {
	return func(ctx context.Context, caller int) error {
		set, err := r.conns[caller].Set(ctx, r.keys.next(), owner(caller), ttl)
		if err == nil && !set {
			err = errHeld
		}
		return err
	}
}
