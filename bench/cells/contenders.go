package cells

import (
	"context"

	"github.com/leasenode/leasenode/bench/client"
	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/lease"
)

// etcdWork, leasenodeWork and zooKeeperWork make contenders of what a session can do.

func (s *sessions) etcdWork(at side, work func(ctx context.Context, e *client.Etcd) (rounds, error)) contender {
	return contender{side: at, prepare: func(ctx context.Context) (rounds, error) {
		e, err := s.toEtcd()
		if err != nil {
			return nil, err
		}
		return work(ctx, e)
	}}
}

func (s *sessions) leasenodeWork(at side, work func(ctx context.Context, l *client.Leasenode) (rounds, error)) contender {
	return contender{side: at, prepare: func(ctx context.Context) (rounds, error) {
		l, err := s.toLeasenode(at)
		if err != nil {
			return nil, err
		}
		return work(ctx, l)
	}}
}

func (s *sessions) zooKeeperWork(work func(z *client.ZooKeeper) rounds) contender {
	return contender{side: zooKeeper, prepare: func(ctx context.Context) (rounds, error) {
		z, err := s.toZooKeeper(ctx)
		if err != nil {
			return nil, err
		}
		return work(z), nil
	}}
}

// same has what work prepares be done in every round.
func same(call measure.Call, err error) (rounds, error) {
	if err != nil {
		return nil, err
	}
	return every(call), nil
}

// rationed has each round take its share of the pool.
func rationed[T any](pool *client.Pool[T], call measure.Call) rounds {
	return func(left int) measure.Call {
		pool.Ration(left)
		return call
	}
}

func (s *sessions) acquirers() []contender {
	return []contender{
		s.etcdWork(etcd, func(_ context.Context, e *client.Etcd) (rounds, error) { return every(e.Acquire(&s.etcdOwn)), nil }),
		s.etcdWork(etcdShared, func(ctx context.Context, e *client.Etcd) (rounds, error) {
			return same(e.AcquireShared(ctx, &s.etcdShared))
		}),
		s.zooKeeperWork(func(z *client.ZooKeeper) rounds { return every(z.Acquire(&s.zooKeeperNodes)) }),
		{side: redis, prepare: func(ctx context.Context) (rounds, error) {
			r, err := s.toRedis(ctx)
			if err != nil {
				return nil, err
			}
			return every(r.Acquire()), nil
		}},
		s.leasenodeAcquirer(leasenode),
		s.leasenodeAcquirer(leasenodeWAL),
	}
}

func (s *sessions) leasenodeAcquirer(at side) contender {
	pool := &s.ours(at).leases
	return s.leasenodeWork(at, func(_ context.Context, l *client.Leasenode) (rounds, error) { return every(l.Acquire(pool)), nil })
}

func (s *sessions) leasenodeReleaser(at side) contender {
	pool := &s.ours(at).leases
	return s.leasenodeWork(at, func(_ context.Context, l *client.Leasenode) (rounds, error) {
		return rationed(pool, l.Release(pool)), nil
	})
}

// releasers release what acquirers of the same sessions have acquired.
func (s *sessions) releasers() []contender {
	return []contender{
		s.etcdWork(etcd, func(_ context.Context, e *client.Etcd) (rounds, error) {
			return rationed(&s.etcdOwn, e.Revoke(&s.etcdOwn)), nil
		}),
		s.etcdWork(etcdShared, func(_ context.Context, e *client.Etcd) (rounds, error) {
			return rationed(&s.etcdShared, e.Delete(&s.etcdShared)), nil
		}),
		s.zooKeeperWork(func(z *client.ZooKeeper) rounds { return rationed(&s.zooKeeperNodes, z.Release(&s.zooKeeperNodes)) }),
		s.leasenodeReleaser(leasenode),
		s.leasenodeReleaser(leasenodeWAL),
	}
}

func (s *sessions) renewers() []contender {
	return []contender{
		s.etcdWork(etcd, func(ctx context.Context, e *client.Etcd) (rounds, error) { return same(e.Renew(ctx, s.callers)) }),
		s.leasenodeWork(leasenode, func(ctx context.Context, l *client.Leasenode) (rounds, error) { return same(l.Renew(ctx, s.callers)) }),
		s.leasenodeWork(leasenodeWAL, func(ctx context.Context, l *client.Leasenode) (rounds, error) { return same(l.Renew(ctx, s.callers)) }),
	}
}

// batchCallers is how many callers send a BatchRenew at a time. Each call is of 1,000
// renewals, so that few are enough.
const batchCallers = 8

// keepers keep many leases alive: etcd with a call for each, leasenode in batches.
func (s *sessions) keepers() []contender {
	batch := s.leasenodeWork(leasenode, func(ctx context.Context, l *client.Leasenode) (rounds, error) {
		return same(l.BatchRenew(ctx, batchCallers))
	})
	batch.clients, batch.units = batchCallers, lease.MaxBatchRenew
	return []contender{
		s.etcdWork(etcd, func(ctx context.Context, e *client.Etcd) (rounds, error) { return same(e.KeepAlive(ctx, s.callers)) }),
		batch,
	}
}

func (s *sessions) readers() []contender {
	return []contender{
		s.etcdWork(etcd, func(ctx context.Context, e *client.Etcd) (rounds, error) { return same(e.Get(ctx, s.callers)) }),
		s.leasenodeWork(leasenode, func(ctx context.Context, l *client.Leasenode) (rounds, error) { return same(l.Get(ctx, s.callers)) }),
	}
}

// mostWaiterClients is how many clients the waiters for one key share: they stand for
// processes of their own.
const mostWaiterClients = 64

// waiters hand one key over among the callers, in a new session.
func waiters(clusters Clusters, opened *closers, callers int) []contender {
	clients := min(callers, mostWaiterClients)
	return []contender{
		{side: etcd, prepare: func(ctx context.Context) (rounds, error) {
			e, err := client.DialEtcd(clusters.Etcd.Addrs(), clients)
			if err != nil {
				return nil, err
			}
			opened.add(e)
			w, err := e.Waiters(ctx, callers)
			if err != nil {
				return nil, err
			}
			return func(int) measure.Call { return w.Handover() }, nil
		}},
		leasenodeWaiters(leasenode, clusters, opened, clients),
		leasenodeWaiters(leasenodeWAL, clusters, opened, clients),
	}
}

func leasenodeWaiters(at side, clusters Clusters, opened *closers, clients int) contender {
	return contender{side: at, prepare: func(context.Context) (rounds, error) {
		l, err := client.DialLeasenode(clusters.of(at).Addrs(), clients)
		if err != nil {
			return nil, err
		}
		opened.add(l)
		return func(int) measure.Call { return l.Handover() }, nil
	}}
}
