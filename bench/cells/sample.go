package cells

import (
	"time"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/proc"
)

// sample is one measurement of one side.
type sample struct {
	measure.Result
	// leader is what the leader used up while the window was open, follower the mean of
	// the others, generator the CPU time of this process.
	leader, follower proc.Usage
	generator        time.Duration
}

func rate(s sample) float64 { return s.Rate() }
func p50(s sample) float64  { return milliseconds(s.P50) }
func p99(s sample) float64  { return milliseconds(s.P99) }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }

func leaderCPU(s sample) float64    { return s.each(microseconds(s.leader.CPU)) }
func followerCPU(s sample) float64  { return s.each(microseconds(s.follower.CPU)) }
func generatorCPU(s sample) float64 { return s.each(microseconds(s.generator)) }

func leaderBytes(s sample) float64   { return s.each(float64(s.leader.Written)) }
func followerBytes(s sample) float64 { return s.each(float64(s.follower.Written)) }

func microseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }

// each is the part of one unit of work; 0 if none was done.
func (s sample) each(all float64) float64 {
	if s.Units == 0 {
		return 0
	}
	return all / float64(s.Units)
}

// sum adds samples up, for what is counted in steps too coarse for a single one.
func sum(samples []sample) sample {
	var total sample
	for _, s := range samples {
		total.Units += s.Units
		total.leader, total.follower = total.leader.Plus(s.leader), total.follower.Plus(s.follower)
		total.generator += s.generator
	}
	return total
}

// meter reads what a cluster and this process use up between two edges.
type meter struct {
	cluster *peer.Cluster
	leader  int
	// readings is empty, or has that of the first edge, or of both.
	readings []reading
	err      error
}

type reading struct {
	members   []proc.Usage
	generator time.Duration
}

// read takes a reading. Only the first failure is kept: a member that is gone is told of
// by more than one.
func (m *meter) read() {
	var r reading
	var err error
	if r.generator, err = proc.OwnCPU(); err != nil {
		m.fail(err)
	}
	for _, pid := range m.cluster.Pids() {
		usage, err := proc.UsageOf(pid)
		if err != nil {
			m.fail(err)
		}
		r.members = append(r.members, usage)
	}
	m.readings = append(m.readings, r)
}

func (m *meter) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// addTo notes the difference of the two readings in the sample.
func (m *meter) addTo(s *sample) {
	if m.err != nil || len(m.readings) != 2 {
		return
	}
	before, after := m.readings[0], m.readings[1]
	s.generator = after.generator - before.generator
	var others proc.Usage
	for i, usage := range after.members {
		used := usage.Minus(before.members[i])
		if i == m.leader {
			s.leader = used
		} else {
			others = others.Plus(used)
		}
	}
	if n := len(after.members) - 1; n > 0 {
		s.follower = proc.Usage{CPU: others.CPU / time.Duration(n), Written: others.Written / int64(n)}
	}
}
