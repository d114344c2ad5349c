package measure_test

import (
	"math"
	"testing"
	"time"

	"github.com/leasenode/leasenode/bench/measure"
)

func TestQuantileIsAMemberWithTheFractionNotAboveIt(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		all  []time.Duration
		q    float64
		want time.Duration
	}{
		{nil, 0.5, 0},
		{[]time.Duration{7}, 0.99, 7},
		{[]time.Duration{2, 1}, 0.5, 1},
		{[]time.Duration{3, 1, 2}, 0.5, 2},
		{hundred, 0.50, 50},
		{hundred, 0.99, 99},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := measure.Quantile(c.all, c.q); got != c.want {
			t.Errorf("quantile %v of %v is %v, not %v", c.q, c.all, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{5}, 5},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := measure.Median(c.values); got != c.want {
			t.Errorf("the median of %v is %v, not %v", c.values, got, c.want)
		}
	}
	if got := measure.Median(nil); !math.IsNaN(got) {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestMedianLeavesItsArgumentAlone(t *testing.T) {
	values := []float64{3, 1, 2}
	measure.Median(values)
	if values[0] != 3 || values[1] != 1 {
		t.Errorf("the rounds are out of order now: %v", values)
	}
}

func TestLongestGap(t *testing.T) {
	start := time.Now()
	at := func(ms ...int) (times []time.Time) {
		for _, m := range ms {
			times = append(times, start.Add(time.Duration(m)*time.Millisecond))
		}
		return times
	}
	kill := start.Add(100 * time.Millisecond)
	for name, c := range map[string]struct {
		successes []time.Time
		want      time.Duration
	}{
		"out of order":                            {at(400, 90, 410, 101), 299 * time.Millisecond},
		"a gap before the kill does not count":    {at(0, 90, 110, 120), 20 * time.Millisecond},
		"it begins with the last success before":  {at(50, 200), 150 * time.Millisecond},
		"a second gap may be the longer one":      {at(90, 150, 160, 500, 510), 340 * time.Millisecond},
		"no success after the kill":               {at(0, 50, 90), 0},
		"nothing to measure from before the kill": {at(200), 0},
	} {
		if got := measure.LongestGap(c.successes, kill); got != c.want {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
