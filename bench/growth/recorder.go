package main

import (
	"sync"
	"time"

	"github.com/leasenode/leasenode/bench/measure"
)

// kind is a kind of operation.
type kind int

const (
	acquires kind = iota
	renewals
	releases
	gets
	kinds
)

var kindNames = [kinds]string{"acquire", "renew", "release", "get"}

// recorder takes in how long operations took. It is safe for concurrent use.
type recorder struct {
	mu       sync.Mutex
	took     [kinds][]time.Duration
	failures int
	first    error
}

// do does one operation and takes it in.
func (r *recorder) do(k kind, operation func() error) error {
	began := time.Now()
	err := operation()
	took := time.Since(began)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.took[k] = append(r.took[k], took)
		return nil
	}
	r.failures++
	if r.first == nil {
		r.first = err
	}
	return err
}

// recorderColumns are the names of what [recorder.row] has.
func recorderColumns() []string {
	var all []string
	for _, name := range kindNames {
		all = append(all, name+"_per_s", name+"_p50_ms", name+"_p99_ms")
	}
	return append(all, "failures")
}

// row returns what came since the last call, which was so long ago, as numbers.
func (r *recorder) row(since time.Duration) []float64 {
	r.mu.Lock()
	took, failures := r.took, r.failures
	r.took, r.failures = [kinds][]time.Duration{}, 0
	r.mu.Unlock()
	var row []float64
	for _, all := range took {
		row = append(row, float64(len(all))/since.Seconds(), milliseconds(measure.Quantile(all, 0.50)), milliseconds(measure.Quantile(all, 0.99)))
	}
	return append(row, float64(failures))
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
