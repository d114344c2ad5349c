package nemesis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// Hooks are what [Run] gets from outside and whom it tells. Now is required; whichever
// other is nil is not called. All but Healed are called on the goroutine of Run.
type Hooks struct {
	// Now is the harness's clock. It has to go on at the pace of package time.
	Now func() time.Duration
	// Fault hears of each fault when it has ended.
	Fault func(history.Fault)
	// Active hears of the faults there are, whenever that changes.
	Active func([]history.Fault)
	// Healed is called at the end of each time of faults, when all is healed, with when
	// that was; also when the context of Run has ended, which that of Healed does not. The
	// next phase waits for it, however long it takes: the cluster's time to recover is
	// measured without faults.
	Healed func(ctx context.Context, healed time.Duration)
}

const (
	// leaderTimeout bounds the search for the leader, at the beginning of a step.
	leaderTimeout = time.Second
	// reviveEvery is how often nodes that have ended are started in a quiet time: some
	// end by themselves, and only after what made them has gone.
	reviveEvery = 500 * time.Millisecond
)

// Run does a schedule to a target and returns when its time is over, or when ctx ends and
// the recovery from what was done is measured. It undoes each fault, and in the end, also after an error, all of them: links,
// clocks and disks are well, what was stopped goes on, and each node was started that
// did not run. An error means that something could not be done to the target, and not
// that the target behaved badly.
func Run(ctx context.Context, s Schedule, target Target, hooks Hooks) (err error) {
	if err := s.Validate(); err != nil {
		return err
	}
	if s.Nodes != target.Nodes() || s.Holders > target.Holders() {
		return fmt.Errorf("the schedule is for %d nodes and %d holders, and there are %d and %d", s.Nodes, s.Holders, target.Nodes(), target.Holders())
	}
	r := &runner{schedule: s, target: target, hooks: hooks, begun: hooks.Now(), is: newWorld(target.Nodes(), target.Holders())}
	defer func() { err = errors.Join(err, r.heal()) }()
	for _, phase := range s.Phases {
		if err := r.storm(ctx, phase); err != nil {
			return err
		}
		if err := r.heal(); err != nil {
			return err
		}
		if err := r.quiet(ctx, phase); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// runner is a schedule under way.
type runner struct {
	schedule Schedule
	target   Target
	hooks    Hooks
	// begun is when the schedule's time was 0. A phase that took longer moves it on.
	begun  time.Duration
	is     *world // as the target was left
	active []*fault
}

// fault is a step under way.
type fault struct {
	step  Step
	nodes []int // it turned out to be about
	on    bool  // and not in the gone half of its period
	told  history.Fault
}

func (r *runner) elapsed() time.Duration { return r.hooks.Now() - r.begun }

// storm does the steps of a phase until it is time to heal.
func (r *runner) storm(ctx context.Context, phase Phase) error {
	var waiting []Step
	for _, step := range r.schedule.Steps {
		if step.At >= phase.From && step.At < phase.Heal {
			step.For = min(step.For, phase.Heal-step.At)
			waiting = append(waiting, step)
		}
	}
	for ctx.Err() == nil {
		now := r.elapsed()
		next := phase.Heal
		for len(waiting) > 0 && waiting[0].At <= now {
			r.begin(ctx, waiting[0])
			waiting = waiting[1:]
		}
		if len(waiting) > 0 {
			next = min(next, waiting[0].At)
		}
		if err := r.advance(now, &next); err != nil {
			return err
		}
		if now >= phase.Heal {
			return nil
		}
		r.wait(ctx, next)
	}
	return nil
}

// begin makes a step active.
func (r *runner) begin(ctx context.Context, step Step) {
	nodes := slices.Clone(step.Nodes)
	if step.Leader {
		ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
		if leader, ok := r.target.Leader(ctx); ok {
			nodes[0] = leader
		}
		cancel()
	}
	told := history.Fault{Kind: string(step.Kind), Targets: names(step, nodes, r.schedule.Nodes), Detail: detail(step), From: r.hooks.Now()}
	r.active = append(r.active, &fault{step: step, nodes: nodes, told: told})
}

// advance brings the target into the state of the faults at now, ends those that are
// over, and lowers next to when something changes.
func (r *runner) advance(now time.Duration, next *time.Duration) error {
	var ended []*fault
	r.active = slices.DeleteFunc(r.active, func(f *fault) bool {
		if over := now >= f.step.End(); over {
			ended = append(ended, f)
			return true
		}
		*next = min(*next, f.step.End())
		f.on = true
		if every := f.step.Every; every > 0 {
			half := (now - f.step.At) / every
			f.on = half%2 == 0
			*next = min(*next, f.step.At+(half+1)*every)
		}
		return false
	})
	if err := r.bring(r.wanted()); err != nil {
		return err
	}
	r.tell(ended)
	return nil
}

// wanted is the state that the active faults ask for.
func (r *runner) wanted() *world {
	w := newWorld(r.target.Nodes(), r.target.Holders())
	for _, f := range r.active {
		if f.on {
			w.add(f.step, f.nodes)
		}
	}
	return w
}

// tell tells of faults that have ended and of those that go on.
func (r *runner) tell(ended []*fault) {
	for _, f := range ended {
		f.told.Until = r.hooks.Now()
		if r.hooks.Fault != nil {
			r.hooks.Fault(f.told)
		}
	}
	if r.hooks.Active == nil {
		return
	}
	var active []history.Fault
	for _, f := range r.active {
		active = append(active, f.told)
	}
	r.hooks.Active(active)
}

// heal ends all faults and starts what does not run.
func (r *runner) heal() error {
	ended := r.active
	r.active = nil
	err := errors.Join(r.bring(r.wanted()), r.revive())
	r.tell(ended)
	return err
}

// revive starts each node that does not run.
func (r *runner) revive() error {
	var err error
	for node := range r.target.Nodes() {
		err = errors.Join(err, r.target.Start(node))
	}
	return err
}

// quiet waits for the end of a phase and for who measures the recovery, and starts
// nodes that end.
func (r *runner) quiet(ctx context.Context, phase Phase) error {
	healed := r.hooks.Now()
	done := make(chan struct{})
	var measuring sync.WaitGroup
	measuring.Go(func() {
		defer close(done)
		if r.hooks.Healed != nil {
			r.hooks.Healed(context.WithoutCancel(ctx), healed)
		}
	})
	defer measuring.Wait()
	for !closed(done) || ctx.Err() == nil && r.elapsed() < phase.Until {
		r.pause(ctx, done)
		if err := r.revive(); err != nil {
			return err
		}
	}
	r.begun += max(0, r.elapsed()-phase.Until)
	return nil
}

// pause returns when it is time to look after the nodes again, or all has been measured
// and ctx has ended.
func (r *runner) pause(ctx context.Context, measured <-chan struct{}) {
	timer := time.NewTimer(reviveEvery)
	defer timer.Stop()
	select {
	case <-timer.C:
		return
	case <-measured:
	}
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// wait returns at a time of the schedule, or when ctx ends.
func (r *runner) wait(ctx context.Context, until time.Duration) {
	timer := time.NewTimer(until - r.elapsed())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
