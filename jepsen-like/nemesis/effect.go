package nemesis

import "slices"

// world is the state in which a target is, or shall be. The zero state of everything
// is health.
type world struct {
	links   [][]LinkState // from, to
	clients []LinkState
	ending  []ending
	stopped []bool
	clocks  []ClockState
	disks   []DiskState
	holders []bool // stopped
}

// ending says how a node that does not run was ended.
type ending uint8

const (
	runs ending = iota
	terminated
	killed
)

func newWorld(nodes, holders int) *world {
	w := &world{
		links: make([][]LinkState, nodes), clients: make([]LinkState, nodes), ending: make([]ending, nodes),
		stopped: make([]bool, nodes), clocks: make([]ClockState, nodes), disks: make([]DiskState, nodes), holders: make([]bool, holders),
	}
	for i := range w.links {
		w.links[i] = make([]LinkState, nodes)
	}
	return w
}

// add adds what a step does, to the nodes that it turned out to be about.
func (w *world) add(step Step, nodes []int) {
	switch GroupOf(step.Kind) {
	case Partition:
		w.cut(func(from, to int) bool { return cuts(step.Kind, nodes, from, to) })
	case Network:
		for from := range w.links {
			for to := range w.links {
				if from != to && (len(nodes) == 0 || slices.Contains(nodes, from) || slices.Contains(nodes, to)) {
					w.links[from][to] = combine(w.links[from][to], step.Link)
				}
			}
		}
	case Client:
		for _, node := range w.orAll(nodes) {
			w.clients[node] = combine(w.clients[node], step.Link)
		}
	case Process:
		if step.Kind == KillSnapshot {
			w.worsen(step, nodes)
			return
		}
		how := killed
		if step.Kind == Transfer {
			how = terminated
		}
		for _, node := range w.orAll(nodes) {
			w.ending[node] = max(w.ending[node], how)
		}
	case Pause:
		w.pause(step, nodes)
	case Clock:
		for _, node := range w.orAll(nodes) {
			w.clocks[node].Rate = larger(w.clocks[node].Rate, step.Clock.Rate)
			w.clocks[node].Jump += step.Clock.Jump
		}
	case Disk:
		w.worsen(step, nodes)
	}
}

func (w *world) worsen(step Step, nodes []int) {
	for _, node := range nodes {
		w.disks[node] = worse(w.disks[node], step.Disk)
	}
}

func (w *world) pause(step Step, nodes []int) {
	if step.Kind == PauseHolder {
		w.holders[step.Holder] = true
		return
	}
	for _, node := range nodes {
		w.stopped[node] = true
	}
}

func (w *world) cut(cut func(from, to int) bool) {
	for from := range w.links {
		for to := range w.links {
			if from != to && cut(from, to) {
				w.links[from][to].Cut = true
			}
		}
	}
}

// cuts reports whether a partition of that kind lets nothing through.
func cuts(kind Kind, nodes []int, from, to int) bool {
	switch kind {
	case Isolate, IsolateLeader, Flapping:
		return from == nodes[0] || to == nodes[0]
	case LoseIncoming:
		return to == nodes[0]
	case LoseOutgoing:
		return from == nodes[0]
	case Split:
		return slices.Contains(nodes, from) != slices.Contains(nodes, to)
	case Bridge:
		if from == nodes[0] || to == nodes[0] {
			return false
		}
		half := nodes[1 : 1+len(nodes)/2]
		return slices.Contains(half, from) != slices.Contains(half, to)
	case Ring:
		apart := slices.Index(nodes, from) - slices.Index(nodes, to)
		return apart != 1 && apart != -1 && apart != len(nodes)-1 && apart != 1-len(nodes)
	default:
		return false
	}
}

func (w *world) orAll(nodes []int) []int {
	if len(nodes) > 0 {
		return nodes
	}
	all := make([]int, len(w.links))
	for i := range all {
		all[i] = i
	}
	return all
}

// combine returns what two faults do to a link together.
func combine(a, b LinkState) LinkState {
	return LinkState{
		Cut: a.Cut || b.Cut, HalfOpen: a.HalfOpen || b.HalfOpen,
		Delay: a.Delay + b.Delay, Jitter: a.Jitter + b.Jitter,
		BytesPerSecond: lesser(a.BytesPerSecond, b.BytesPerSecond), ResetEvery: lesser(a.ResetEvery, b.ResetEvery),
	}
}

// lesser returns the smaller of two bounds, of which 0 is none.
func lesser[N ~int | ~int64](a, b N) N {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// larger returns the rate that is further from the right one.
func larger(a, b float64) float64 {
	if max(a, -a) > max(b, -b) {
		return a
	}
	return b
}

// worse returns the state of a disk that has two faults.
func worse(a, b DiskState) DiskState {
	order := []DiskState{DiskHealthy, DiskSlow, DiskDeadly, DiskFull, DiskReadOnly, DiskFailing, DiskHanging}
	if slices.Index(order, a) > slices.Index(order, b) {
		return a
	}
	return b
}
