// Package report turns figures into a document: medians with their spread, ratios to
// the peers, the goals and whether they are reached.
//
// It is pure, and judges ratios only: no figure is held against an absolute time, since
// that would be about the machine. Start reading at [Row].
package report

import (
	"math"
	"slices"

	"github.com/leasenode/leasenode/bench/measure"
)

// System is what was measured.
type System string

// The systems.
const (
	Etcd      System = "etcd"
	ZooKeeper System = "ZooKeeper"
	Leasenode System = "leasenode"
	// Redis has no consensus: it is shown as a reference and never counted.
	Redis System = "Redis"
)

// Unit is what figures are in.
type Unit uint8

// The units.
const (
	PerSecond Unit = iota
	Milliseconds
	Seconds
	MiB
	Microseconds
	Bytes
)

// Pick is the one figure that stands for all of them.
type Pick uint8

// The picks.
const (
	Middle  Pick = iota // the median
	Largest             // the largest, where that is the worst
)

// Sense says on which side of its bound a ratio has to be.
type Sense uint8

// The senses.
const (
	AtLeast Sense = iota
	AtMost
)

// Goal is a bound on the ratio of leasenode's figure to a peer's.
type Goal struct {
	Versus System
	Sense  Sense
	Bound  float64
}

// Row is one line of a table.
type Row struct {
	Work string
	Unit Unit
	Pick Pick
	// Figures are what was measured, by system, in the order of the rounds.
	Figures map[System][]float64
	// Notes stand where a system has no figures, or beside those it has.
	Notes map[System]string
	// Goals may be several, or none: the ratio is shown all the same.
	Goals []Goal
}

// Figure is what stands for all figures of the system; NaN if there are none.
func (r Row) Figure(s System) float64 {
	figures := r.Figures[s]
	if len(figures) > 0 && r.Pick == Largest {
		return slices.Max(figures)
	}
	return measure.Median(figures)
}

// Ratio is leasenode's figure divided by the peer's.
type Ratio struct {
	Value float64
	// Low and High are the smallest and the largest ratio of a single round. They are
	// NaN where rounds do not go together.
	Low, High float64
}

// Ratio returns the ratio to a peer; false if one of the two has no figure, or the peer's
// is 0.
func (r Row) Ratio(peer System) (Ratio, bool) {
	ours, theirs := r.Figure(Leasenode), r.Figure(peer)
	if math.IsNaN(ours) || math.IsNaN(theirs) || theirs == 0 {
		return Ratio{}, false
	}
	ratio := Ratio{Value: ours / theirs, Low: math.NaN(), High: math.NaN()}
	if r.Pick == Middle && len(r.Figures[Leasenode]) == len(r.Figures[peer]) {
		var rounds []float64
		for i, theirs := range r.Figures[peer] {
			rounds = append(rounds, r.Figures[Leasenode][i]/theirs)
		}
		ratio.Low, ratio.High = slices.Min(rounds), slices.Max(rounds)
	}
	return ratio, true
}

// Verdict is what became of a goal.
type Verdict string

// The verdicts.
const (
	Reached    Verdict = "yes"
	Missed     Verdict = "no"
	Unmeasured Verdict = "not measured"
)

// Judge says whether the goal is reached.
func (r Row) Judge(g Goal) Verdict {
	ratio, ok := r.Ratio(g.Versus)
	switch {
	case !ok:
		return Unmeasured
	case g.Sense == AtLeast && ratio.Value >= g.Bound, g.Sense == AtMost && ratio.Value <= g.Bound:
		return Reached
	default:
		return Missed
	}
}
