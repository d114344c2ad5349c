package measure

import (
	"math"
	"slices"
	"time"
)

// Quantile returns the smallest duration that at least the fraction q of all is not
// longer than; 0 if there are none. It sorts its argument.
func Quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	rank := int(math.Ceil(q * float64(len(all))))
	return all[min(max(rank, 1), len(all))-1]
}

// Median returns the middle of the values, between the two middle ones if their number
// is even; NaN if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// LongestGap returns the longest time between one success and the next, of those that
// end after from. It is 0 if there is no success after from with one before it. It
// sorts its argument.
func LongestGap(successes []time.Time, from time.Time) time.Duration {
	slices.SortFunc(successes, time.Time.Compare)
	var longest time.Duration
	for i := 1; i < len(successes); i++ {
		if successes[i].After(from) {
			longest = max(longest, successes[i].Sub(successes[i-1]))
		}
	}
	return longest
}
