package cells

import (
	"fmt"
	"maps"
	"slices"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/report"
)

// table is all cells of load, in their order: what is released was acquired before.
func table(clusters Clusters, opened *closers) []cell {
	of := map[int]*sessions{}
	for _, callers := range []int{1, 16, 128, 512} {
		of[callers] = &sessions{clusters: clusters, callers: callers, opened: opened}
	}
	cells := []cell{
		acquireCell(of[1]), acquireCell(of[16]), acquireCell(of[128]), acquireCell(of[512]),
		releaseCell(of[128]), releaseCell(of[512]),
		renewCell(of[128]), keepCell(of[128]), readCell(of[128]),
		waitCell(clusters, opened, waitPlan{callers: 64, warmWindows: 1}), waitCell(clusters, opened, waitPlan{callers: 1000, warmWindows: 4}),
	}
	for i := range cells {
		cells[i].sides = takingPart(clusters, cells[i].sides)
		if clusters.LeasenodeWAL != nil {
			cells[i].addWAL()
		}
	}
	return cells
}

// addWAL adds the rows of leasenode with its log in files, which take part in the cell.
func (c *cell) addWAL() {
	if !slices.ContainsFunc(c.sides, func(by contender) bool { return by.side == leasenodeWAL }) {
		return
	}
	for _, rows := range []*[]rowPlan{&c.rows, &c.costs} {
		for _, row := range *rows {
			if row.from[report.Leasenode] == leasenode {
				row.from = maps.Clone(row.from)
				row.from[report.Leasenode] = leasenodeWAL
				row.work = "(wal) " + row.work
				*rows = append(*rows, row)
			}
		}
	}
}

// takingPart leaves out the systems that are not installed.
func takingPart(clusters Clusters, sides []contender) []contender {
	return slices.DeleteFunc(sides, func(c contender) bool { return clusters.of(c.side) == nil })
}

// measurements is how many there are in one round of all cells, by the time they take.
func measurements(cells []cell) int {
	n := 0
	for _, c := range cells {
		n += len(c.sides) * (1 + c.warmWindows)
	}
	return n
}

// Columns.
var (
	ownLease    = map[report.System]side{report.Etcd: etcd, report.ZooKeeper: zooKeeper, report.Leasenode: leasenode, report.Redis: redis}
	sharedLease = map[report.System]side{report.Etcd: etcdShared, report.Leasenode: leasenode}
	onlyEtcd    = map[report.System]side{report.Etcd: etcd, report.Leasenode: leasenode}
)

func atLeast(peer report.System, bound float64) report.Goal {
	return report.Goal{Versus: peer, Sense: report.AtLeast, Bound: bound}
}

func atMost(peer report.System, bound float64) report.Goal {
	return report.Goal{Versus: peer, Sense: report.AtMost, Bound: bound}
}

func acquireCell(s *sessions) cell {
	const own, shared = "acquire, distinct keys, each its own lease (etcd: Grant + Txn)", "acquire, beside one Txn on a lease that many keys share"
	c := cell{work: "acquire", clients: s.callers, sides: s.acquirers()}
	sharedBound := map[int]float64{1: 1, 16: 1.4, 128: 2.2, 512: 2.2}[s.callers]
	switch s.callers {
	case 1:
		c.rows = []rowPlan{{
			work: own, of: "p50", unit: report.Milliseconds, value: p50, from: ownLease,
			goals: []report.Goal{atMost(report.Etcd, 0.5)},
		}}
		c.costs = costs("acquire, each its own lease", ownLease)
	case 128, 512:
		c.rows = []rowPlan{{
			work: own, unit: report.PerSecond, value: rate, from: ownLease,
			goals: []report.Goal{atLeast(report.Etcd, 5), atLeast(report.ZooKeeper, 1.2)},
		}, {
			work: own, of: "p99", unit: report.Milliseconds, value: p99, from: ownLease,
			goals: []report.Goal{atMost(report.Etcd, 0.4), atMost(report.ZooKeeper, 0.4)},
		}}
		c.costs = append(costs("acquire, each its own lease", ownLease), costs("acquire, beside a shared lease", sharedLease)...)
	default: // only beside the shared lease: the rest would cost time and say nothing new
		c.sides = slices.DeleteFunc(c.sides, func(c contender) bool { return c.side != etcdShared && c.side != leasenode && c.side != leasenodeWAL })
	}
	c.rows = append(c.rows, rowPlan{
		work: shared, unit: report.PerSecond, value: rate, from: sharedLease,
		goals: []report.Goal{atLeast(report.Etcd, sharedBound)},
	})
	return c
}

// releaseCell is beside Revoke where leases are few, and beside deleting the key, etcd's
// cheaper way, where they are many.
func releaseCell(s *sessions) cell {
	c := cell{work: "release", clients: s.callers, sides: s.releasers()}
	leftOut := etcd
	if s.callers < 512 {
		leftOut = etcdShared
		c.rows = []rowPlan{{
			work: "release (etcd: Revoke)", unit: report.PerSecond, value: rate, from: ownLease,
			goals: []report.Goal{atLeast(report.Etcd, 15), atLeast(report.ZooKeeper, 1.1)},
		}}
	} else {
		from := map[report.System]side{report.Etcd: etcdShared, report.ZooKeeper: zooKeeper, report.Leasenode: leasenode}
		c.rows = []rowPlan{{work: "release (etcd: delete the key)", unit: report.PerSecond, value: rate, from: from}}
	}
	c.sides = slices.DeleteFunc(c.sides, func(c contender) bool { return c.side == leftOut })
	return c
}

func renewCell(s *sessions) cell {
	return cell{
		work: "durable renewal", clients: s.callers, sides: s.renewers(),
		rows: []rowPlan{{
			work: "durable renewal, one call each (etcd: Txn)", unit: report.PerSecond, value: rate, from: onlyEtcd,
			goals: []report.Goal{atLeast(report.Etcd, 3)},
		}},
		costs: costs("durable renewal", onlyEtcd),
	}
}

func keepCell(s *sessions) cell {
	return cell{
		work: "renewals of many leases", clients: s.callers, sides: s.keepers(),
		rows: []rowPlan{{
			work: fmt.Sprintf("renewals in BatchRenew, leases a second, %d at a time (etcd: KeepAliveOnce, not durable)", batchCallers), unit: report.PerSecond,
			value: rate, from: onlyEtcd, goals: []report.Goal{atLeast(report.Etcd, 4)},
		}},
	}
}

func readCell(s *sessions) cell {
	return cell{
		work: "linearizable get", clients: s.callers, sides: s.readers(),
		rows: []rowPlan{{work: "linearizable get", unit: report.PerSecond, value: rate, from: onlyEtcd, goals: []report.Goal{atLeast(report.Etcd, 1.2)}}},
	}
}

type waitPlan struct{ callers, warmWindows int }

func waitCell(clusters Clusters, opened *closers, p waitPlan) cell {
	return cell{
		work: "handover", clients: p.callers, end: measure.CutOff, warmWindows: p.warmWindows, sides: waiters(clusters, opened, p.callers),
		rows: []rowPlan{{
			work: "one key handed over (etcd: concurrency.Mutex; leasenode: Acquire with a wait)", unit: report.PerSecond, value: rate,
			from: onlyEtcd, goals: []report.Goal{atLeast(report.Etcd, 20)},
		}},
	}
}

// costs are the rows that say what the work costs each process.
func costs(work string, from map[report.System]side) []rowPlan {
	return []rowPlan{
		{work: "CPU of the leader, " + work, unit: report.Microseconds, value: leaderCPU, from: from},
		{work: "CPU of a follower, " + work, unit: report.Microseconds, value: followerCPU, from: from},
		{work: "CPU of the load generator, " + work, unit: report.Microseconds, value: generatorCPU, from: from},
		{work: "bytes written by the leader, " + work, unit: report.Bytes, value: leaderBytes, from: from},
		{work: "bytes written by a follower, " + work, unit: report.Bytes, value: followerBytes, from: from},
	}
}
