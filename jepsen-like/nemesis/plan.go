package nemesis

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Options are what a schedule is made from.
type Options struct {
	Seed    uint64
	Nodes   int
	Holders int
	// Time is how long the schedule lasts, quiet times included.
	Time time.Duration
	// Kinds are the faults to choose from; none for a run without faults.
	Kinds []Kind
	// PhaseTime is about how long a phase lasts, of which two thirds have faults; 0
	// stands for 15 s.
	PhaseTime time.Duration
	// Intensity is about how many faults there are at a time; 0 stands for 1.5.
	Intensity float64
}

const (
	defaultPhase     = 15 * time.Second
	defaultIntensity = 1.5
	shortestFault    = 300 * time.Millisecond
)

// Plan returns the schedule for o. It depends on o only.
func Plan(o Options) Schedule {
	if o.PhaseTime <= 0 {
		o.PhaseTime = defaultPhase
	}
	if o.Intensity <= 0 {
		o.Intensity = defaultIntensity
	}
	s := Schedule{Seed: o.Seed, Nodes: o.Nodes, Holders: o.Holders, Time: o.Time, Steps: []Step{}}
	p := planner{Options: o, random: rand.New(rand.NewPCG(o.Seed, 0x6e656d6573697300))}
	phases := max(1, int((o.Time+o.PhaseTime/2)/o.PhaseTime))
	for i := range phases {
		from, until := o.Time*time.Duration(i)/time.Duration(phases), o.Time*time.Duration(i+1)/time.Duration(phases)
		phase := Phase{From: from, Heal: from + (until-from)*2/3, Until: until}
		s.Phases = append(s.Phases, phase)
		s.Steps = append(s.Steps, p.phase(phase)...)
	}
	s.sort()
	return s
}

// planner draws steps. Its deck has each kind once and is shuffled anew when it is
// used up, so that a short run too sees as many kinds as it can.
type planner struct {
	Options
	random *rand.Rand
	deck   []Kind
}

// phase draws the steps of one phase.
func (p *planner) phase(phase Phase) []Step {
	var steps []Step
	length := phase.Heal - phase.From
	if length < shortestFault {
		return nil
	}
	for load := p.Intensity * float64(length); load > 0; {
		kind, ok := p.draw(steps)
		if !ok {
			return steps
		}
		step := p.step(kind, length)
		step.At = phase.From + time.Duration(p.random.Int64N(int64(length-step.For)+1))
		steps = append(steps, step)
		load -= float64(step.For)
	}
	return steps
}

// draw takes the next kind from the deck that this cluster and phase can have.
func (p *planner) draw(phase []Step) (Kind, bool) {
	for range 2*len(p.Kinds) + 1 {
		if len(p.deck) == 0 {
			p.deck = slices.Clone(p.Kinds)
			p.random.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
		}
		if len(p.deck) == 0 {
			return "", false
		}
		kind := p.deck[0]
		p.deck = p.deck[1:]
		if p.fits(kind, phase) {
			return kind, true
		}
	}
	return "", false
}

func (p *planner) fits(kind Kind, phase []Step) bool {
	switch kind {
	case Ring:
		return p.Nodes >= 4
	case Bridge, Split:
		return p.Nodes >= 3
	case Isolate, IsolateLeader, LoseIncoming, LoseOutgoing, Flapping:
		return p.Nodes >= 2
	case PauseHolder:
		return p.Holders > 0
	case ClockJump:
		// More than one in the time of a lease could add up to more than its margin.
		return !slices.ContainsFunc(phase, func(s Step) bool { return s.Kind == ClockJump })
	default:
		return true
	}
}

// step draws the parameters of a step in a phase that has length for faults. Each kind
// draws as often whatever comes out, so that one step does not change the next.
func (p *planner) step(kind Kind, length time.Duration) Step {
	step := Step{Kind: kind, For: p.between(500*time.Millisecond, 4*time.Second)}
	nodes := p.random.Perm(p.Nodes)
	half := p.random.IntN(2) == 0
	majority := p.Nodes/2 + 1
	switch kind {
	case Isolate, Flapping, KillNode, KillSnapshot, PauseNode, SlowRestart, Restarts:
		step.Nodes = nodes[:1]
	case IsolateLeader, KillLeader, PauseLeader, Transfer:
		step.Nodes, step.Leader = nodes[:1], true
	case LoseIncoming, LoseOutgoing:
		step.Nodes, step.Leader = nodes[:1], half
	case Split:
		step.Nodes = nodes[:1+p.random.IntN((p.Nodes-1)/2)]
	case Bridge, Ring:
		step.Nodes = nodes
	case KillMajority, PauseMajority:
		step.Nodes = nodes[:majority]
	case PauseHolder:
		step.Holder = p.random.IntN(max(1, p.Holders))
	case ClockBeyond, KillAll:
	default: // of some group below
		if step.Nodes = nodes[:1]; half && GroupOf(kind) != Disk {
			step.Nodes = nil
		}
	}
	p.refine(&step, length)
	step.For = max(shortestFault, min(step.For, length))
	return step
}

// refine draws what is particular to a kind.
func (p *planner) refine(step *Step, length time.Duration) {
	switch step.Kind {
	case Flapping:
		step.For, step.Every = p.between(2*time.Second, 6*time.Second), p.between(100*time.Millisecond, time.Second)
	case Restarts:
		step.For, step.Every = p.between(2*time.Second, 6*time.Second), p.between(200*time.Millisecond, time.Second)
	case SlowRestart:
		step.For = length * 3 / 4
	case KillNode, KillLeader, KillMajority, KillAll, Transfer:
		step.For = p.between(shortestFault, 2*time.Second)
	case KillSnapshot: // until it takes one, and a while longer
		step.For, step.Disk = p.between(2*time.Second, 5*time.Second), DiskDeadly
	case PauseMajority:
		step.For = p.between(shortestFault, 2*time.Second)
	case Latency, ClientLatency:
		step.Link.Delay = p.between(10*time.Millisecond, 150*time.Millisecond)
	case Jitter:
		step.Link.Jitter = p.between(20*time.Millisecond, 300*time.Millisecond)
	case Bandwidth:
		step.Link.BytesPerSecond = 4_000 + p.random.IntN(60_000)
	case Resets, ClientResets:
		step.Link.ResetEvery = p.between(50*time.Millisecond, 800*time.Millisecond)
	case HalfOpen:
		step.Link.HalfOpen = true
	case ClientCut:
		step.Link.Cut = true
	case ClockFast:
		step.Clock.Rate = 0.02 + 0.08*p.random.Float64()
	case ClockSlow:
		step.Clock.Rate = -0.02 - 0.13*p.random.Float64()
	case ClockJump:
		step.Clock.Jump = p.between(5*time.Millisecond, 50*time.Millisecond)
	case ClockBeyond:
		step.Clock.Rate, step.For = 2, length
	case DiskIsFull:
		step.Disk = DiskFull
	case DiskFails:
		step.Disk = DiskFailing
	case DiskIsReadOnly:
		step.Disk = DiskReadOnly
	case DiskIsSlow:
		step.Disk = DiskSlow
	case DiskIsHanging:
		step.Disk, step.For = DiskHanging, p.between(500*time.Millisecond, 6*time.Second)
	}
}

// between returns a length from least on and below most, in whole milliseconds.
func (p *planner) between(least, most time.Duration) time.Duration {
	return least + time.Duration(p.random.Int64N(int64((most-least)/time.Millisecond)))*time.Millisecond
}
