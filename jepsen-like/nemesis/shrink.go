package nemesis

import (
	"context"
	"slices"
	"time"
)

// Shrink returns a schedule that is as small as it can find and still fails: with fewer
// phases, fewer steps and shorter ones. fails does a schedule and reports whether what
// was found wrong with s is wrong again; s itself is not tried. Where failing is a
// matter of luck, it is for fails to try several times. When ctx ends, the smallest
// that was found by then is returned.
func Shrink(ctx context.Context, s Schedule, fails func(Schedule) bool) Schedule {
	sh := shrinker{ctx: ctx, fails: fails}
	s = sh.phases(s)
	s = sh.steps(s)
	s = sh.lengths(s)
	return s
}

type shrinker struct {
	ctx   context.Context
	fails func(Schedule) bool
}

func (sh shrinker) still(s Schedule) bool { return sh.ctx.Err() == nil && sh.fails(s) }

// phases finds one phase that fails by itself, or drops the last ones.
func (sh shrinker) phases(s Schedule) Schedule {
	if len(s.Phases) < 2 {
		return s
	}
	for i := range s.Phases {
		if only := s.only(i, i+1); sh.still(only) {
			return only
		}
	}
	for n := len(s.Phases) - 1; n > 1; n-- {
		shorter := s.only(0, n)
		if !sh.still(shorter) {
			break
		}
		s = shorter
	}
	return s
}

// only returns the phases from the one until the other, moved to the beginning.
func (s Schedule) only(from, until int) Schedule {
	start, end := s.Phases[from].From, s.Phases[until-1].Until
	phases := slices.Clone(s.Phases[from:until])
	for i := range phases {
		phases[i] = Phase{phases[i].From - start, phases[i].Heal - start, phases[i].Until - start}
	}
	var steps []Step
	for _, step := range s.Steps {
		if step.At >= start && step.At < end {
			step.At -= start
			steps = append(steps, step)
		}
	}
	s.Phases, s.Steps, s.Time = phases, steps, end-start
	return s
}

// steps is delta debugging: it drops ever smaller parts of the steps while the rest
// still fails.
func (sh shrinker) steps(s Schedule) Schedule {
	for parts := 2; len(s.Steps) > 0 && sh.ctx.Err() == nil; {
		size := (len(s.Steps) + parts - 1) / parts
		smaller, found := sh.without(s, size)
		switch {
		case found:
			s, parts = smaller, max(2, parts-1)
		case size == 1:
			return s
		default:
			parts = min(2*parts, len(s.Steps))
		}
	}
	return s
}

// without returns s without some run of size steps, if it then still fails.
func (sh shrinker) without(s Schedule, size int) (Schedule, bool) {
	for at := 0; at < len(s.Steps); at += size {
		smaller := s
		smaller.Steps = slices.Delete(slices.Clone(s.Steps), at, min(at+size, len(s.Steps)))
		if sh.still(smaller) {
			return smaller, true
		}
	}
	return s, false
}

// lengths halves each step while it still fails, down to shortestFault.
func (sh shrinker) lengths(s Schedule) Schedule {
	for i := range s.Steps {
		for s.Steps[i].For >= 2*shortestFault {
			shorter := s
			shorter.Steps = slices.Clone(s.Steps)
			shorter.Steps[i].For = (s.Steps[i].For / 2).Truncate(time.Millisecond)
			if !sh.still(shorter) {
				break
			}
			s = shorter
		}
	}
	return s
}
