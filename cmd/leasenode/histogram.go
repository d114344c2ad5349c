package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in a fixed amount of memory. A quantile is never
// below the true one and at most 1/64 above it; the maximum is exact. The zero
// value is empty.
type histogram struct {
	counts [histogramBuckets]uint64
	count  uint64
	max    time.Duration
}

// A duration below 2^subBits nanoseconds has a bucket of its own; above, each
// power of two is cut into 2^(subBits-1) buckets.
const (
	subBits          = 7
	subBuckets       = 1 << (subBits - 1)
	histogramBuckets = (64 - subBits + 2) * subBuckets
)

func bucketOf(d time.Duration) int {
	ns := uint64(max(d, 0))
	shift := max(bits.Len64(ns)-subBits, 0)
	return shift*subBuckets + int(ns>>shift)
}

// bucketEnd is the longest duration of a bucket.
func bucketEnd(bucket int) time.Duration {
	shift := max(bucket/subBuckets-1, 0)
	return time.Duration((uint64(bucket-shift*subBuckets)+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.count++
	h.max = max(h.max, d)
}

func (h *histogram) join(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.count += other.count
	h.max = max(h.max, other.max)
}

// quantile returns the duration that the fraction q of all is not longer than; 0
// if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := max(uint64(q*float64(h.count)+0.5), 1)
	var seen uint64
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(bucketEnd(i), h.max)
		}
	}
	return h.max
}
