// Package cells is the table of what is measured: the work, how many clients do it, the
// systems that take turns at it, and the goals. [Load] puts load on running clusters,
// [Failover] kills their leaders, [Memory] fills them up; each makes rows of the report.
//
// The load comes from this process, the systems are processes of their own. On a machine
// with few cores they share them: that is the same for all, and the CPU time of this
// process is shown beside theirs.
package cells

import (
	"context"
	"fmt"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/report"
)

// side is one way of doing the work of a cell, by one system.
type side string

// The sides. etcd has two where a key can have a lease of its own or share one.
const (
	etcd       side = "etcd"
	etcdShared side = "etcd, one lease for many keys"
	zooKeeper  side = "ZooKeeper"
	leasenode  side = "leasenode"
	redis      side = "Redis"
	// leasenodeWAL keeps its log in files of its own (--log-store wal).
	leasenodeWAL side = "leasenode, wal"
)

// Clusters are the systems that take part; all but Etcd and Leasenode may be nil.
type Clusters struct {
	Etcd, Leasenode, LeasenodeWAL, ZooKeeper, Redis *peer.Cluster
}

// of returns the cluster of a side, or nil.
func (c Clusters) of(s side) *peer.Cluster {
	switch s {
	case etcd, etcdShared:
		return c.Etcd
	case zooKeeper:
		return c.ZooKeeper
	case redis:
		return c.Redis
	case leasenodeWAL:
		return c.LeasenodeWAL
	default:
		return c.Leasenode
	}
}

// cell is one piece of work, done by all its sides in turns.
type cell struct {
	work    string
	clients int
	end     measure.End
	// warmWindows is how many windows more it takes until the work is as it will be, as
	// with a line that has to form.
	warmWindows int
	sides       []contender
	rows        []rowPlan
	costs       []rowPlan
}

func (c cell) name() string { return c.work + ", " + clientCount(c.clients) }

func clientCount(n int) string {
	if n == 1 {
		return "1 client"
	}
	return fmt.Sprintf("%d clients", n)
}

// contender is a side of a cell.
type contender struct {
	side side
	// prepare makes ready what the calls need, and returns what makes the calls of each
	// round.
	prepare func(ctx context.Context) (rounds, error)
	// clients is how many make calls, 0 for as many as the cell has.
	clients int
	// units is how much work one call does, 0 for 1.
	units int
}

// rounds returns the calls of a round, of which so many are left, this one included.
type rounds func(left int) measure.Call

// every has the same calls in every round.
func every(call measure.Call) rounds { return func(int) measure.Call { return call } }

// rowPlan is a row of the report that is made from a cell.
type rowPlan struct {
	work string
	// of is what is shown, where it is not the rate.
	of    string
	unit  report.Unit
	value func(sample) float64
	// from says which side stands in which column.
	from  map[report.System]side
	goals []report.Goal
}
