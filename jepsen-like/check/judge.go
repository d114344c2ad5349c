package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/model"
)

// Options say what has to hold, where that is a number. The zero value has the
// defaults of a cluster and allows clocks no difference.
type Options struct {
	// PerKey bounds the search for an order of one key's operations; 0 is 10 s. A key
	// that is not done then is unknown.
	PerKey time.Duration
	// Rate is how much faster than the harness's clock, as a fraction of it, the clock
	// of a node may run: 0.01 for a hundredth. Where clocks are skewed on purpose it has
	// to be what the holders' margin allows.
	Rate float64
	// KeptGrants and KeptRenewals are how much history the cluster keeps of a key; 0 is
	// 16 and 8.
	KeptGrants, KeptRenewals int
	// Recovery is the time within which every node has to serve after the last fault
	// has healed; 0 is no bound but that it does.
	Recovery time.Duration
	// Skip has names of checks that cannot be made of this run, and the reasons.
	Skip map[string]string
}

const defaultPerKey = 10 * time.Second

func (o Options) withDefaults() Options {
	if o.PerKey == 0 {
		o.PerKey = defaultPerKey
	}
	if o.KeptGrants == 0 {
		o.KeptGrants = 16
	}
	if o.KeptRenewals == 0 {
		o.KeptRenewals = 8
	}
	return o
}

// subject is a run, made ready to be looked at.
type subject struct {
	run     history.Run
	options Options
	keys    []string // all that operations are about, in order
	ops     map[string][]history.Op
	grants  map[string]*grants // of keys, and of others that holders or the store had
}

func newSubject(run history.Run, o Options) *subject {
	s := &subject{run: run, options: o.withDefaults(), ops: model.Split(run.Ops), grants: map[string]*grants{}}
	for key := range s.ops {
		s.keys = append(s.keys, key)
	}
	slices.Sort(s.keys)
	for _, key := range s.keys {
		s.grants[key] = gatherGrants(s, key)
	}
	for _, b := range run.Beliefs {
		s.alsoOf(b.Key)
	}
	for _, w := range run.Writes {
		s.alsoOf(w.Key)
	}
	return s
}

// alsoOf gathers the grants of a key that a holder had and nobody recorded operations of,
// as with a program that is not ours.
func (s *subject) alsoOf(key string) {
	if s.grants[key] == nil {
		s.grants[key] = gatherGrants(s, key)
	}
}

// finding is what one check has found.
type finding struct{ Check }

func (f *finding) violation(v Violation) {
	f.Found++
	f.Status = Fail
	if len(f.Violations) < MaxViolations {
		v.Check = f.Name
		f.Violations = append(f.Violations, v)
	}
}

// unknown says why the check could not find out; a failed check stays failed.
func (f *finding) unknown(format string, args ...any) {
	if f.Status != Fail {
		f.Status = Unknown
	}
	f.note(format, args...)
}

func (f *finding) note(format string, args ...any) {
	f.Notes = append(f.Notes, fmt.Sprintf(format, args...))
}

// Judge makes all checks of run. It does not change it.
func Judge(run history.Run, o Options) Verdict {
	began := time.Now()
	s := newSubject(run, o)
	var v Verdict
	for _, c := range []struct {
		name, promise, of string
		look              func(*subject, *finding)
	}{
		{"recorded", "The record is whole, and one that can have been taken.", "lines", recorded},
		{"linearizable", "There is an order of each key's operations, each between its call and its answer, in which every answer is right.", "answers", func(s *subject, f *finding) { v.Keys = linearizable(s, f) }},
		{"fresh", "A linearizable read shows every change that was acknowledged before it began.", "reads", fresh},
		{"stale-reads", "A stale read shows a state that there was.", "reads", staleReads},
		{"epochs", "Each epoch is granted once, to one owner for one attempt, and epochs move by one, never back.", "records", epochs},
		{"exclusion", "No two holders are certain at once that they hold a key.", "beliefs", exclusion},
		{"believed", "No holder is certain once its lease has ended, or longer than the store can have told it.", "beliefs", believed},
		{"resource", "The resource takes no token lower than one that it took before, and none that was not granted.", "writes", resource},
		{"floor", "The forgotten floor never goes back, and moves only to an epoch that asked for it.", "records", floor},
		{"history", "The stored history is what was acknowledged and what holders held, in order, and nothing that nobody asked for.", "entries", storedHistory},
		{"acknowledged", "The last records have everything that was acknowledged.", "records", acknowledged},
		{"digests", "Nodes that have applied the same entries have the same state.", "digests", digests},
		{"watched", "Watchers are told exactly what happened, in order: each change once, and each end of a lease by time.", "events", watched},
		{"clock", "The cluster clock never goes back and never runs faster than time; no lease ends early.", "instants", clock},
		{"liveness", "After the last fault has healed every node serves.", "recoveries", liveness},
	} {
		f := &finding{Check{Name: c.name, Promise: c.promise, Of: c.of, Status: Pass}}
		if reason, skip := s.options.Skip[c.name]; skip {
			f.Status = Skipped
			f.note("%s", reason)
		} else {
			c.look(s, f)
		}
		v.Checks = append(v.Checks, f.Check)
	}
	v.Took = time.Since(began)
	return v
}

// inOrder calls look with each op in the order of calls, after it has called past with
// every op that had returned by then.
func inOrder(ops []history.Op, past, look func(history.Op)) {
	returns := byReturn(ops)
	for _, op := range byCall(ops) {
		for len(returns) > 0 && returns[0].Return < op.Call {
			past(returns[0])
			returns = returns[1:]
		}
		look(op)
	}
}

func byCall(ops []history.Op) []history.Op {
	return slices.SortedStableFunc(slices.Values(ops), func(a, b history.Op) int { return cmp.Compare(a.Call, b.Call) })
}

func byReturn(ops []history.Op) []history.Op {
	return slices.SortedStableFunc(slices.Values(ops), func(a, b history.Op) int { return cmp.Compare(a.Return, b.Return) })
}

// span is the time from the earliest call to the latest return of ops.
func span(ops ...history.Op) (from, until time.Duration) {
	from, until = ops[0].Call, ops[0].Return
	for _, op := range ops[1:] {
		from, until = min(from, op.Call), max(until, op.Return)
	}
	return from, until
}

// by is the violation that ops make together.
func by(text string, ops ...history.Op) Violation {
	v := Violation{Key: ops[0].Key, Text: text}
	v.From, v.Until = span(ops...)
	for _, op := range ops {
		if op.ID > 0 { // else it is none of a client's
			v.Ops = append(v.Ops, op.ID)
		}
	}
	return v
}

// brief is d for people: to a tenth of a millisecond, unless that is nothing.
func brief(d time.Duration) time.Duration {
	if rounded := d.Round(time.Millisecond / 10); rounded != 0 {
		return rounded
	}
	return d
}
