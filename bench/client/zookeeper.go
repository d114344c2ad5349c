package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasenode/leasenode/bench/measure"
)

// MostSessions is how many sessions of ZooKeeper, each with a connection of its own, share
// a load at most.
const MostSessions = 64

// ZooKeeper is some sessions with ZooKeeper. Its methods are safe for concurrent use.
type ZooKeeper struct {
	conns []*zk.Conn
	keys  *keys
}

// silent drops what the client logs.
type silent struct{}

func (silent) Printf(string, ...any) {}

// sessionTimeout is how long ZooKeeper keeps the nodes of a session it hears nothing of.
const sessionTimeout = 20 * time.Second

// DialZooKeeper makes so many sessions, spread over the members, the first one with the
// first member, and a node under which all others are made.
func DialZooKeeper(ctx context.Context, addrs []string, sessions int) (*ZooKeeper, error) {
	z := &ZooKeeper{keys: newKeys()}
	for i := range sessions {
		conn, events, err := zk.Connect([]string{addrs[i%len(addrs)]}, sessionTimeout, zk.WithLogger(silent{}), zk.WithLogInfo(false))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("connect to ZooKeeper: %w", err), z.Close())
		}
		z.conns = append(z.conns, conn)
		if err := awaitSession(ctx, events); err != nil {
			return nil, errors.Join(err, z.Close())
		}
	}
	root := "/" + strings.TrimSuffix(z.keys.prefix, "/")
	if _, err := z.conns[0].Create(root, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		return nil, errors.Join(fmt.Errorf("create %s in ZooKeeper: %w", root, err), z.Close())
	}
	// A member that is behind must not refuse what is made under a root it does not know.
	for _, conn := range z.conns {
		if _, err := conn.Sync(root); err != nil {
			return nil, errors.Join(fmt.Errorf("sync ZooKeeper: %w", err), z.Close())
		}
	}
	return z, nil
}

// awaitSession returns when there is a session. What comes after that is dropped.
func awaitSession(ctx context.Context, events <-chan zk.Event) error {
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("wait for a session with ZooKeeper: %w", context.Cause(ctx))
		}
	}
}

// Close ends the sessions, and their nodes are gone.
func (z *ZooKeeper) Close() error {
	var closing sync.WaitGroup
	for _, conn := range z.conns {
		closing.Go(conn.Close) // which waits for an answer, or a second
	}
	closing.Wait()
	return nil
}

func (z *ZooKeeper) of(caller int) *zk.Conn { return z.conns[caller%len(z.conns)] }

// Acquire creates distinct ephemeral nodes.
func (z *ZooKeeper) Acquire(pool *Pool[string]) measure.Call {
	acl := zk.WorldACL(zk.PermAll)
	return func(_ context.Context, caller int) error {
		path, err := z.of(caller).Create("/"+z.keys.next(), []byte(owner(caller)), zk.FlagEphemeral, acl)
		if err == nil {
			pool.Put(path)
		}
		return err
	}
}

// Release deletes them.
func (z *ZooKeeper) Release(pool *Pool[string]) measure.Call {
	const anyVersion = -1
	return func(_ context.Context, caller int) error {
		path, ok := pool.Take()
		if !ok {
			return measure.ErrDry
		}
		return z.of(caller).Delete(path, anyVersion)
	}
}
