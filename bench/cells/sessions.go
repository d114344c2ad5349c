package cells

import (
	"context"
	"errors"
	"io"

	"github.com/leasenode/leasenode/bench/client"
	"github.com/leasenode/leasenode/lease"
)

// sessions are the clients of one number of callers with all systems, made when they are
// first used, and what they have acquired and not released yet.
type sessions struct {
	clusters Clusters
	callers  int
	opened   *closers

	etcd      *client.Etcd
	zooKeeper *client.ZooKeeper
	redis     *client.Redis

	etcdOwn, etcdShared client.Pool[client.Owned]
	zooKeeperNodes      client.Pool[string]

	leasenode, leasenodeWAL ours
}

// ours is the session with one cluster of leasenode.
type ours struct {
	session *client.Leasenode
	leases  client.Pool[lease.Record]
}

func (s *sessions) ours(at side) *ours {
	if at == leasenodeWAL {
		return &s.leasenodeWAL
	}
	return &s.leasenode
}

// closers are what has to be closed in the end.
type closers struct{ all []io.Closer }

func (c *closers) add(one io.Closer) { c.all = append(c.all, one) }

func (c *closers) close() error {
	var err error
	for _, one := range c.all {
		err = errors.Join(err, one.Close())
	}
	return err
}

// open returns what *session is, made by dial if it is the first time.
func open[S interface {
	comparable
	io.Closer
}](s *sessions, session *S, dial func() (S, error)) (S, error) {
	var none S
	if *session != none {
		return *session, nil
	}
	made, err := dial()
	if err != nil {
		return none, err
	}
	*session = made
	s.opened.add(made)
	return made, nil
}

func (s *sessions) toEtcd() (*client.Etcd, error) {
	return open(s, &s.etcd, func() (*client.Etcd, error) {
		return client.DialEtcd(s.clusters.Etcd.Addrs(), min(s.callers, client.Connections))
	})
}

func (s *sessions) toLeasenode(at side) (*client.Leasenode, error) {
	return open(s, &s.ours(at).session, func() (*client.Leasenode, error) {
		return client.DialLeasenode(s.clusters.of(at).Addrs(), min(s.callers, client.Connections))
	})
}

// toZooKeeper has the first session with the leader, as the clients of leasenode have.
func (s *sessions) toZooKeeper(ctx context.Context) (*client.ZooKeeper, error) {
	return open(s, &s.zooKeeper, func() (*client.ZooKeeper, error) {
		leader, err := s.clusters.ZooKeeper.Leader(ctx)
		if err != nil {
			return nil, err
		}
		addrs := s.clusters.ZooKeeper.Addrs()
		leaderFirst := append(append([]string{}, addrs[leader:]...), addrs[:leader]...)
		return client.DialZooKeeper(ctx, leaderFirst, min(s.callers, client.MostSessions))
	})
}

func (s *sessions) toRedis(ctx context.Context) (*client.Redis, error) {
	return open(s, &s.redis, func() (*client.Redis, error) {
		return client.DialRedis(ctx, s.clusters.Redis.Addrs()[0], s.callers)
	})
}
