package cells

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasenode/leasenode/bench/client"
	"github.com/leasenode/leasenode/bench/measure"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/report"
)

const (
	// writers is how many callers write while a leader is killed.
	writers = 16
	// beforeKill is how long they write before it, afterKill how long they go on after
	// the first write that began after it, in case there is another gap.
	beforeKill, afterKill = 500 * time.Millisecond, time.Second
	// writerPause is after a write that failed.
	writerPause = 5 * time.Millisecond
	// recoveryTimeout is how long a cluster may take to accept a write again.
	recoveryTimeout = 30 * time.Second
)

// Victim is a system whose leader is killed.
type Victim struct {
	System  report.System
	Cluster *peer.Cluster
	// dial opens a session, and returns what writes.
	dial func(ctx context.Context) (measure.Call, io.Closer, error)
}

// Victims are the systems whose failover is compared.
func Victims(clusters Clusters) []Victim {
	return []Victim{
		{report.Etcd, clusters.Etcd, func(ctx context.Context) (measure.Call, io.Closer, error) {
			e, err := client.DialEtcd(clusters.Etcd.Addrs(), client.Connections)
			if err != nil {
				return nil, nil, err
			}
			call, err := e.Write(ctx, writers)
			return call, e, err
		}},
		{report.Leasenode, clusters.Leasenode, func(ctx context.Context) (measure.Call, io.Closer, error) {
			l, err := client.DialLeasenode(clusters.Leasenode.Addrs(), client.Connections)
			if err != nil {
				return nil, nil, err
			}
			call, err := l.Write(ctx, writers)
			return call, l, err
		}},
	}
}

// KillPlan says how many leaders are killed: Most of each system, and no more once Until
// has come.
type KillPlan struct {
	Most  int
	Until time.Time
}

// Failover kills leaders, one of each system in turns, each while callers write, and
// starts the member again before the next. The figure is the longest time without a
// successful write, from the kill on.
func Failover(ctx context.Context, victims []Victim, kills KillPlan, progress Progress) Found {
	gaps := map[report.System][]float64{}
	notes := map[report.System]string{}
	var found Found
	for n := 0; n < kills.Most && time.Now().Before(kills.Until) && ctx.Err() == nil && len(notes) == 0; n++ {
		for _, v := range victims {
			gap, err := v.kill(ctx)
			if err != nil && ctx.Err() == nil {
				found.Faults = append(found.Faults, fmt.Sprintf("kill %d of the leader of %s: %v", n+1, v.System, err))
				notes[v.System] = "failed"
			}
			if err != nil {
				continue
			}
			gaps[v.System] = append(gaps[v.System], gap.Seconds())
			progress(fmt.Sprintf("    kill %d of the leader of %-10s no write for %.2f s", n+1, v.System, gap.Seconds()))
		}
	}
	for system, all := range gaps {
		notes[system] = joinNotes(fmt.Sprintf("%d kills", len(all)), notes[system])
	}
	found.Goals = failoverRows(gaps, notes)
	return found
}

func joinNotes(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}

func failoverRows(gaps map[report.System][]float64, notes map[report.System]string) []report.Row {
	if len(gaps) == 0 && len(notes) == 0 {
		notes = map[report.System]string{report.Etcd: TimeIsUp, report.Leasenode: TimeIsUp}
	}
	work := fmt.Sprintf("no successful write after SIGKILL of the leader, default settings, %d writers", writers)
	return []report.Row{
		{Work: work + ", median", Unit: report.Seconds, Figures: gaps, Notes: notes, Goals: []report.Goal{atMost(report.Etcd, 0.05)}},
		{Work: work + ", worst", Unit: report.Seconds, Pick: report.Largest, Figures: gaps, Notes: notes, Goals: []report.Goal{atMost(report.Etcd, 0.1)}},
	}
}

// kill kills the leader once, and returns when the cluster is whole again.
func (v Victim) kill(ctx context.Context) (gap time.Duration, err error) {
	if err := v.Cluster.AwaitReady(ctx); err != nil {
		return 0, err
	}
	call, session, err := v.dial(ctx)
	if session != nil {
		defer func() { err = errors.Join(err, session.Close()) }()
	}
	if err != nil {
		return 0, err
	}
	w := startWriting(ctx, call)
	killed, member, err := v.killUnder(ctx, w)
	successes := w.stop()
	if !killed.IsZero() {
		err = errors.Join(err, v.Cluster.Restart(member), v.Cluster.AwaitReady(ctx))
	}
	if err != nil {
		return 0, err
	}
	return measure.LongestGap(successes, killed), nil
}

// killUnder returns when it killed which member, which is the zero time if it did not.
func (v Victim) killUnder(ctx context.Context, w *writing) (killed time.Time, member int, err error) {
	if !peer.Pause(ctx, beforeKill) {
		return killed, 0, context.Cause(ctx)
	}
	if err := w.awaitWriteAfter(ctx, time.Now()); err != nil {
		return killed, 0, fmt.Errorf("before the kill: %w", err)
	}
	member, err = v.Cluster.Leader(ctx)
	if err != nil {
		return killed, 0, err
	}
	killed = time.Now()
	if err := v.Cluster.Kill(member); err != nil {
		return killed, member, err
	}
	if err := w.awaitWriteAfter(ctx, time.Now()); err != nil {
		return killed, member, fmt.Errorf("after the kill: %w", err)
	}
	if !peer.Pause(ctx, afterKill) {
		return killed, member, context.Cause(ctx)
	}
	return killed, member, nil
}

// writing is callers that write until they are stopped.
type writing struct {
	cancel  context.CancelFunc
	callers sync.WaitGroup
	// latest is when the latest write that has succeeded began, in Unix nanoseconds.
	latest atomic.Int64
	// successes are when writes succeeded, by caller.
	successes [writers][]time.Time
}

func startWriting(ctx context.Context, call measure.Call) *writing {
	ctx, cancel := context.WithCancel(ctx)
	w := &writing{cancel: cancel}
	for caller := range writers {
		w.callers.Go(func() { w.writeLoop(ctx, call, caller) })
	}
	return w
}

func (w *writing) writeLoop(ctx context.Context, call measure.Call, caller int) {
	for ctx.Err() == nil {
		began := time.Now()
		if err := call(ctx, caller); err != nil {
			peer.Pause(ctx, writerPause)
			continue
		}
		w.successes[caller] = append(w.successes[caller], time.Now())
		for latest := w.latest.Load(); began.UnixNano() > latest && !w.latest.CompareAndSwap(latest, began.UnixNano()); {
			latest = w.latest.Load()
		}
	}
}

// awaitWriteAfter returns when a write that began after t has succeeded.
func (w *writing) awaitWriteAfter(ctx context.Context, t time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	for w.latest.Load() <= t.UnixNano() {
		if !peer.Pause(ctx, writerPause) {
			return fmt.Errorf("no write succeeded: %w", context.Cause(ctx))
		}
	}
	return nil
}

// stop stops the callers, waits for them, and returns when writes succeeded.
func (w *writing) stop() []time.Time {
	w.cancel()
	w.callers.Wait()
	var all []time.Time
	for _, times := range w.successes {
		all = append(all, times...)
	}
	return all
}
