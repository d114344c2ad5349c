package fsm_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

var batchSizes = []int{1, 64, 512}

func benchKey(i int) string { return "orgs/organization-1/tenants/t-" + strconv.Itoa(1_000_000_000+i) }

func perMutation(b *testing.B, size int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/mutation")
}

// BenchmarkApply applies entries of so many mutations, one entry a transaction.
func BenchmarkApply(b *testing.B) {
	for _, size := range batchSizes {
		b.Run(fmt.Sprintf("acquire/%d", size), func(b *testing.B) {
			m := openMachine(b, fsm.Settings{MaxKeys: 1 << 40})
			mutations := make([]lease.Mutation, size)
			for n := 0; b.Loop(); n++ {
				for i := range mutations {
					// Neighbours in time are not neighbours in the tree.
					mutations[i] = acquire(benchKey((n*size+i)*7919%100_000_007), "host-1/worker-1", "request-0123456789", 10*time.Second)
				}
				m.do(mutations...)
			}
			perMutation(b, size)
		})
		b.Run(fmt.Sprintf("renew/%d", size), func(b *testing.B) {
			const keys = 100 * 512
			m := openMachine(b, fsm.Settings{})
			for i := range keys / 512 {
				m.do(mutationsFor(512, func(j int) lease.Mutation {
					return acquire(benchKey(i*512+j), "host-1/worker-1", "request-0123456789", 24*time.Hour)
				})...)
			}
			for n := 0; b.Loop(); n++ {
				m.since += time.Microsecond
				m.do(mutationsFor(size, func(i int) lease.Mutation {
					return renew(benchKey((n*size+i)*7919%keys), "host-1/worker-1", 1, 24*time.Hour)
				})...)
			}
			perMutation(b, size)
		})
	}
}

func mutationsFor(n int, of func(i int) lease.Mutation) []lease.Mutation {
	mutations := make([]lease.Mutation, n)
	for i := range mutations {
		mutations[i] = of(i)
	}
	return mutations
}

func BenchmarkEncode(b *testing.B) {
	for _, size := range batchSizes {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			mutations := mutationsFor(size, func(i int) lease.Mutation { return renew(benchKey(i), "host-1/worker-1", 7, 10*time.Second) })
			for b.Loop() {
				batch(someStamp, mutations...)
			}
			perMutation(b, size)
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, size := range batchSizes {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			data := batch(someStamp, mutationsFor(size, func(i int) lease.Mutation { return renew(benchKey(i), "host-1/worker-1", 7, 10*time.Second) })...)
			for b.Loop() {
				if _, _, err := fsm.DecodeBatch(data); err != nil {
					b.Fatal(err)
				}
			}
			perMutation(b, size)
		})
	}
}
