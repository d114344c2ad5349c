package feed

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// BenchmarkEnds measures what a million leases take up, whose keys have 44 bytes, and a
// renewal of one.
func BenchmarkEnds(b *testing.B) {
	const leases = 1_000_000
	key := func(i int) string { return fmt.Sprintf("orgs/organization-1/tenants/tenant-%09d", i) }
	before := heap()
	e := newEnds()
	until := func(i, round int) lease.Instant {
		return lease.Instant(time.Duration(i*7919%leases+round*leases) * time.Microsecond)
	}
	for i := range leases {
		e.add(key(i), until(i, 1))
	}
	each := float64(heap()-before) / leases
	for i := 0; b.Loop(); i++ {
		k, round := key(i%leases), i/leases+1
		e.move(lease.Record{Key: k, Epoch: 1, LeaseUntil: until(i%leases, round)}, lease.Record{Key: k, Epoch: 1, LeaseUntil: until(i%leases, round+1)}, 0)
	}
	b.ReportMetric(each, "B/lease")
	runtime.KeepAlive(e)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
