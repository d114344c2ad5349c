package cells

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/plan"
	"github.com/leasenode/leasenode/bench/report"
)

// TimeIsUp stands in the report where there was no time to measure.
const TimeIsUp = "time was up"

// NotInstalled stands in the report where a system is not there.
const NotInstalled = "not installed"

// Found is what came of a part of the run.
type Found struct {
	Goals, Costs, Reference []report.Row
	Faults                  []string
}

// Add takes in what came of another part.
func (f *Found) Add(other Found) {
	f.Goals = append(f.Goals, other.Goals...)
	f.Costs = append(f.Costs, other.Costs...)
	f.Reference = append(f.Reference, other.Reference...)
	f.Faults = append(f.Faults, other.Faults...)
}

// Progress is told what happens, in a line of text each time.
type Progress func(line string)

// Load puts load on clusters. Its goroutines have ended when Run returns.
type Load struct {
	clusters Clusters
	cells    []cell
	opened   *closers
	progress Progress
}

// NewLoad prepares to put load on the clusters. Close has to be called in the end, before
// they are stopped.
func NewLoad(clusters Clusters, progress Progress) *Load {
	opened := &closers{}
	return &Load{clusters: clusters, cells: table(clusters, opened), opened: opened, progress: progress}
}

// Close ends all sessions.
func (l *Load) Close() error { return l.opened.close() }

// Measurements is how many there are in one round.
func (l *Load) Measurements() int { return measurements(l.cells) }

// Keep leaves only the cells whose name is kept. Releases need the acquires of as many
// clients.
func (l *Load) Keep(kept func(name string) bool) {
	l.cells = slices.DeleteFunc(l.cells, func(c cell) bool { return !kept(c.name()) })
}

// Run measures all cells. When ctx ends it stops, and says what is missing.
func (l *Load) Run(ctx context.Context, p plan.Plan) Found {
	var found Found
	l.warmUp(ctx, p)
	for _, c := range l.cells {
		l.progress(c.name())
		o := outcome{cell: c, samples: map[side][]sample{}, notes: map[side]string{}}
		l.runCell(ctx, p, &o)
		found.Add(o.found(l.clusters))
	}
	return found
}

// warmUp has every system acquire keys for its part of the time. What fails here fails
// again where it is measured, and is told of there.
func (l *Load) warmUp(ctx context.Context, p plan.Plan) {
	const callers = 128
	c := acquireCell(&sessions{clusters: l.clusters, callers: callers, opened: l.opened})
	c.sides = takingPart(l.clusters, c.sides)
	l.progress("warm up")
	p.Warm, p.Window = 0, p.WarmUp/time.Duration(len(c.sides))
	for _, by := range c.sides {
		if calls, err := by.prepare(ctx); err == nil {
			_, _ = l.measure(ctx, p, c, by, calls(1))
		}
	}
}

// outcome is what came of a cell.
type outcome struct {
	cell    cell
	samples map[side][]sample
	// notes say why a side has no samples, or fewer.
	notes  map[side]string
	faults []string
}

// fail notes that a side could not be measured: it is left out from there on.
func (o *outcome) fail(ctx context.Context, s side, err error) {
	if ctx.Err() != nil {
		o.notes[s] = TimeIsUp
		return
	}
	o.notes[s] = "failed"
	o.faults = append(o.faults, fmt.Sprintf("%s, %s: %v", o.cell.name(), s, err))
}

func (l *Load) runCell(ctx context.Context, p plan.Plan, o *outcome) {
	prepared := map[side]rounds{}
	for _, c := range o.cell.sides {
		calls, err := c.prepare(ctx)
		if err != nil {
			o.fail(ctx, c.side, err)
			continue
		}
		prepared[c.side] = calls
	}
	for round := range p.Rounds {
		for _, c := range o.cell.sides {
			calls := prepared[c.side]
			if calls == nil || o.notes[c.side] != "" {
				continue
			}
			s, err := l.measure(ctx, p, o.cell, c, calls(p.Rounds-round))
			if err != nil {
				o.fail(ctx, c.side, err)
				continue
			}
			o.samples[c.side] = append(o.samples[c.side], s)
		}
	}
	for _, c := range o.cell.sides {
		o.countFailures(c.side)
		l.progress(fmt.Sprintf("    %-30s %10.0f/s   p50 %7.2f ms   p99 %7.2f ms %s", c.side,
			median(o.samples[c.side], rate), median(o.samples[c.side], p50), median(o.samples[c.side], p99), o.notes[c.side]))
	}
}

func median(samples []sample, value func(sample) float64) float64 {
	return measure.Median(values(samples, value))
}

func values(samples []sample, value func(sample) float64) []float64 {
	var all []float64
	for _, s := range samples {
		all = append(all, value(s))
	}
	return all
}

// measure takes one sample of one side.
func (l *Load) measure(ctx context.Context, p plan.Plan, c cell, by contender, call measure.Call) (sample, error) {
	cluster := l.clusters.of(by.side)
	leader, err := cluster.Leader(ctx)
	if err != nil {
		return sample{}, err
	}
	m := &meter{cluster: cluster, leader: leader}
	load := measure.Load{Clients: c.clients, Warm: p.Warm + time.Duration(c.warmWindows)*p.Window, Window: p.Window, Units: by.units, End: c.end, AtEdge: m.read}
	if by.clients > 0 {
		load.Clients = by.clients
	}
	result, err := load.Run(ctx, call)
	if err != nil {
		return sample{}, err
	}
	if result.Units == 0 && c.end == measure.LetFinish {
		return sample{}, errors.Join(errors.New("nothing was done"), result.FirstFailure)
	}
	s := sample{Result: result}
	m.addTo(&s)
	return s, m.err
}

func (o *outcome) countFailures(s side) {
	failures := 0
	var first error
	for _, one := range o.samples[s] {
		failures += one.Failures
		if first == nil {
			first = one.FirstFailure
		}
	}
	if failures > 0 {
		o.faults = append(o.faults, fmt.Sprintf("%s, %s: %d calls failed, the first: %v", o.cell.name(), s, failures, first))
	}
}

// found makes the rows.
func (o *outcome) found(clusters Clusters) Found {
	found := Found{Faults: o.faults}
	for _, plan := range o.cell.rows {
		row := o.row(plan, clusters)
		if len(row.Figures[report.Redis]) > 0 {
			found.Reference = append(found.Reference, row)
		}
		found.Goals = append(found.Goals, row)
	}
	for _, plan := range o.cell.costs {
		row := o.row(plan, clusters)
		for system, from := range plan.from { // one figure: a round is too short for its own
			if samples := o.samples[from]; len(samples) > 0 {
				row.Figures[system] = []float64{plan.value(sum(samples))}
			}
		}
		found.Costs = append(found.Costs, row)
	}
	return found
}

func (o *outcome) row(plan rowPlan, clusters Clusters) report.Row {
	row := report.Row{
		Work: joinNotes(plan.work+", "+clientCount(o.cell.clients), plan.of), Unit: plan.unit, Goals: plan.goals,
		Figures: map[report.System][]float64{}, Notes: map[report.System]string{},
	}
	for _, system := range slices.Sorted(maps.Keys(plan.from)) {
		from := plan.from[system]
		row.Figures[system], row.Notes[system] = values(o.samples[from], plan.value), o.notes[from]
		if clusters.of(from) == nil {
			row.Notes[system] = NotInstalled
		}
	}
	return row
}
