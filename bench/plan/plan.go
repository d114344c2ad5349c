// Package plan shares out the time of a run: how long each measurement may take, how
// often it is repeated, how many leaders are killed, how many leases are filled in.
// It is pure. It does not promise that a run takes that long: the run ends at the
// deadline and says what it had no time for.
package plan

import (
	"errors"
	"fmt"
	"time"
)

// Full and Quick are the two lengths of a run.
const (
	Full  = 10 * time.Minute
	Quick = 2 * time.Minute
)

// Shares of the whole. What is left is for starting the systems and for keys that have
// to be there before something can be measured.
const (
	loadShare = 0.42
	// warmUpShare is for all systems before anything is measured.
	warmUpShare = 0.03
	// killsUntil is when no more leader is killed: memory comes after that.
	killsUntil = 0.79
	// settleShare is for one look at the memory of one system.
	settleShare = 0.005
	// warmShare is the part of a measurement before its window opens.
	warmShare = 0.18
)

const (
	// minRounds is how many figures a median is made of at least.
	minRounds = 5
	// minWindow is the shortest window that says anything: CPU time is counted in
	// steps of 10 ms.
	minWindow = 100 * time.Millisecond
	// mostKills is how many leaders of each system are killed at most.
	mostKills = 40
	// fewLeases is for runs shorter than manyLeasesFrom.
	manyLeases, fewLeases = 100_000, 10_000
	manyLeasesFrom        = 5 * time.Minute
)

// Plan is how a run spends its time.
type Plan struct {
	Total time.Duration
	// Rounds is how often each system is measured in each cell, in turns.
	Rounds int
	// WarmUp is how long all systems together are put to work before the first round: a
	// virtual machine compiles what it runs often.
	WarmUp time.Duration
	// Warm and Window are of one measurement.
	Warm, Window time.Duration
	// MostKills bounds the kills of each system's leader, KillsUntil the time for them,
	// from the start of the run.
	MostKills  int
	KillsUntil time.Duration
	// Leases is how many are filled in to measure memory.
	Leases int
	// Settle is how long a filled system is left alone before its memory is read.
	Settle time.Duration
}

// New plans a run of total in which so many measurements are taken in each round. One that
// takes as long as several counts as several.
func New(total time.Duration, measurements int) (Plan, error) {
	if measurements < 1 {
		return Plan{}, errors.New("plan a run: nothing to measure")
	}
	each := part(total, loadShare) / time.Duration(measurements*minRounds)
	p := Plan{
		Total:  total,
		Rounds: minRounds,
		Warm:   part(each, warmShare), Window: part(each, 1-warmShare),
		MostKills: mostKills, KillsUntil: part(total, killsUntil),
		WarmUp: part(total, warmUpShare), Leases: manyLeases, Settle: part(total, settleShare),
	}
	if total < manyLeasesFrom {
		p.Leases = fewLeases
	}
	if p.Window < minWindow {
		return Plan{}, fmt.Errorf("plan a run: %v leave %v for each of %d measurements, which is below %v; give it more time", total, p.Window, measurements*minRounds, minWindow)
	}
	return p, nil
}

func part(whole time.Duration, share float64) time.Duration {
	return time.Duration(float64(whole) * share).Round(time.Millisecond)
}
