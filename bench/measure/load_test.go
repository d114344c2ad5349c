package measure_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/bench/measure"
)

// sleepy is a call that takes d.
func sleepy(d time.Duration) measure.Call {
	return func(context.Context, int) error { time.Sleep(d); return nil }
}

func TestLoadCountsWhatReturnsWithinTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := measure.Load{Clients: 4, Warm: 95 * time.Millisecond, Window: time.Second}
		result, err := load.Run(t.Context(), sleepy(10*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if result.Units != 400 || result.Rate() != 400 {
			t.Errorf("4 clients of 100 calls a second did %d in %v: %v/s", result.Units, result.Window, result.Rate())
		}
		if result.P50 != 10*time.Millisecond || result.P99 != 10*time.Millisecond {
			t.Errorf("p50 %v, p99 %v of calls that take 10 ms", result.P50, result.P99)
		}
	})
}

func TestLoadCountsUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		load := measure.Load{Clients: 1, Warm: 5 * time.Millisecond, Window: 100 * time.Millisecond, Units: 1000}
		result, _ := load.Run(t.Context(), sleepy(10*time.Millisecond))
		if result.Units != 10_000 {
			t.Errorf("10 calls of 1,000 are %d", result.Units)
		}
	})
}

func TestLoadEndsWhenItRunsDry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var left atomic.Int64
		left.Store(50)
		result, err := measure.Load{Clients: 2, Window: time.Hour}.Run(t.Context(), func(context.Context, int) error {
			if left.Add(-1) < 0 {
				return measure.ErrDry
			}
			time.Sleep(time.Millisecond)
			return nil
		})
		if err != nil || result.Failures != 0 {
			t.Fatalf("running dry is no failure: %v, %+v", err, result)
		}
		if result.Window != 25*time.Millisecond {
			t.Errorf("the window closed after %v", result.Window)
		}
		// The last two return as it closes.
		if result.Units < 48 {
			t.Errorf("%d of 50 calls were counted", result.Units)
		}
	})
}

func TestLoadCountsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		result, err := measure.Load{Clients: 1, Window: 10 * time.Millisecond}.Run(t.Context(), func(context.Context, int) error { return broken })
		if err != nil || result.Units != 0 || result.Rate() != 0 || !errors.Is(result.FirstFailure, broken) {
			t.Errorf("%+v, %v", result, err)
		}
		if result.Failures < 9 || result.Failures > 11 {
			t.Errorf("%d failures in 10 ms with a pause of 1 ms", result.Failures)
		}
	})
}

func TestLoadCutsOffWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result, err := measure.Load{Clients: 3, Window: time.Second, End: measure.CutOff}.Run(t.Context(), func(ctx context.Context, _ int) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil || result.Failures != 0 {
			t.Errorf("what was cut off is no failure: %v, %+v", err, result)
		}
	})
}

func TestLoadStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := measure.Load{Clients: 3, Window: time.Hour}.Run(ctx, sleepy(10*time.Millisecond))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

func TestLoadTellsTheEdges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var edges []time.Duration
		load := measure.Load{Clients: 1, Warm: time.Second, Window: 2 * time.Second, AtEdge: func() { edges = append(edges, time.Since(began)) }}
		if _, err := load.Run(t.Context(), sleepy(time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if len(edges) != 2 || edges[0] != time.Second || edges[1] != 3*time.Second {
			t.Errorf("edges at %v", edges)
		}
	})
}
