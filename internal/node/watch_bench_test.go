package node_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// BenchmarkWatchers has 50 writers acquire and release keys on three nodes in this
// process, with no watcher, with 10,000 watchers of as many other keys on one node, and
// with 10,000 watchers of the keys that are written. An iteration is an acquire and a
// release. Watchers and nodes share the process, and so the memory and the processors.
func BenchmarkWatchers(b *testing.B) {
	const keys, writers = 10_000, 50
	for _, watched := range []string{"", "quiet", "busy"} {
		b.Run("watched="+watched, func(b *testing.B) {
			c := startCluster(b, 3)
			client := c.dial()
			var received atomic.Int64
			var mu sync.Mutex
			sent := map[string]time.Time{}
			var latencies []time.Duration
			ctx, stop := context.WithCancel(context.Background())
			var watchers sync.WaitGroup
			before, each := memory(), 0.0
			if watched != "" {
				var begun atomic.Int64
				reader := c.dial(0)
				for i := range keys {
					watchers.Go(func() {
						key := fmt.Sprintf("%s/%d", watched, i)
						for u, err := range reader.Watch(ctx, lease.WatchRequest{Key: key}) {
							if err != nil {
								return
							}
							if len(u.Events) == 0 {
								begun.Add(1)
								continue
							}
							received.Add(int64(len(u.Events)))
							mu.Lock()
							if at, ok := sent[key]; ok && u.Events[0].Kind == lease.Acquired {
								latencies = append(latencies, time.Since(at))
							}
							mu.Unlock()
						}
					})
				}
				c.eventually("all watch", func(context.Context) bool { return begun.Load() >= keys })
				each = float64(memory()-before) / keys
			}
			var writing sync.WaitGroup
			var next atomic.Int64
			b.ResetTimer()
			for range writers {
				writing.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						key := fmt.Sprintf("busy/%d", n%keys)
						a, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "o", TTL: time.Minute})
						if err != nil {
							b.Error(err)
							return
						}
						mu.Lock()
						sent[key] = time.Now()
						mu.Unlock()
						if _, err := client.Release(ctx, lease.ReleaseRequest{Key: key, Owner: "o", Epoch: a.Record.Epoch}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			writing.Wait()
			b.StopTimer()
			b.ReportMetric(each, "B/watcher")
			if watched == "busy" {
				c.eventually("all was told", func(context.Context) bool { return received.Load() == int64(2*b.N) })
				mu.Lock()
				slices.Sort(latencies)
				if n := len(latencies); n > 0 {
					b.ReportMetric(float64(latencies[n/2].Microseconds()), "p50-µs-after-answer")
					b.ReportMetric(float64(latencies[n*99/100].Microseconds()), "p99-µs-after-answer")
				}
				mu.Unlock()
			}
			stop()
			watchers.Wait()
			c.close()
		})
	}
}

// memory returns the bytes of live heap and stacks.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc + stats.StackInuse
}
