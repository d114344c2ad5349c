package cells

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/leasenode/leasenode/bench/client"
	"github.com/leasenode/leasenode/bench/peer"
	"github.com/leasenode/leasenode/bench/proc"
	"github.com/leasenode/leasenode/bench/report"
)

const (
	// fillers is how many callers fill a system in.
	fillers = 256
	// firstPart is the part of the leases at which memory is read for the first time, so
	// that it can be seen whether it grows with them.
	firstPart = 10
	// catchUpTimeout is how long a restarted member may take.
	catchUpTimeout = 2 * time.Minute
)

// Hoard is a system that is filled with leases. Its cluster has to be a fresh one.
type Hoard struct {
	System  report.System
	Cluster *peer.Cluster
	dial    func() (client.Filler, error)
}

// Hoards are the systems whose memory is compared.
func Hoards(clusters Clusters) []Hoard {
	return []Hoard{
		{report.Etcd, clusters.Etcd, func() (client.Filler, error) {
			return client.DialEtcd(clusters.Etcd.Addrs(), client.Connections)
		}},
		{report.Leasenode, clusters.Leasenode, func() (client.Filler, error) {
			return client.DialLeasenode(clusters.Leasenode.Addrs(), client.Connections)
		}},
	}
}

// memoryRows are the rows that Memory fills in.
type memoryRows struct {
	partMemory, memory, fill, ready report.Row
}

// MemoryPlan says how many leases each system is filled with, and how long it is left alone
// before its memory is read.
type MemoryPlan struct {
	Leases int
	Settle time.Duration
}

// Memory fills each system with leases, and reads how much memory each member has
// resident. Then it kills the leader, and takes the time from its start to when it has
// what was written while it was down.
func Memory(ctx context.Context, hoards []Hoard, p MemoryPlan, progress Progress) Found {
	part := max(p.Leases/firstPart, 1)
	memory := []report.Goal{atMost(report.Etcd, 0.4)}
	rows := memoryRows{
		partMemory: memoryRow(fmt.Sprintf("memory at %s leases, the largest node", report.Count(part)), report.MiB, nil),
		memory:     memoryRow(fmt.Sprintf("memory at %s leases, the largest node", report.Count(p.Leases)), report.MiB, memory),
		fill:       memoryRow(fmt.Sprintf("filling in %s leases, %d clients", report.Count(p.Leases), fillers), report.Seconds, nil),
		ready:      memoryRow(fmt.Sprintf("killed leader started again at %s leases: has what it missed", report.Count(p.Leases)), report.Seconds, nil),
	}
	rows.partMemory.Pick, rows.memory.Pick = report.Largest, report.Largest
	var found Found
	for _, h := range hoards {
		if err := h.measure(ctx, &rows, p); err != nil {
			note := "failed"
			if ctx.Err() != nil {
				note = TimeIsUp
			} else {
				found.Faults = append(found.Faults, fmt.Sprintf("memory of %s: %v", h.System, err))
			}
			rows.note(h.System, note)
		}
		progress(fmt.Sprintf("    %-10s %d leases in %.1f s, %.0f MiB; started again in %.2f s", h.System, p.Leases,
			rows.fill.Figure(h.System), rows.memory.Figure(h.System), rows.ready.Figure(h.System)))
	}
	found.Goals = []report.Row{rows.partMemory, rows.memory, rows.fill, rows.ready}
	return found
}

func memoryRow(work string, unit report.Unit, goals []report.Goal) report.Row {
	return report.Row{Work: work, Unit: unit, Goals: goals, Figures: map[report.System][]float64{}, Notes: map[report.System]string{}}
}

// note notes where there are no figures of a system why.
func (r *memoryRows) note(s report.System, note string) {
	for _, row := range []*report.Row{&r.partMemory, &r.memory, &r.fill, &r.ready} {
		if len(row.Figures[s]) == 0 {
			row.Notes[s] = note
		}
	}
}

func (h Hoard) measure(ctx context.Context, rows *memoryRows, p MemoryPlan) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	filler, err := h.dial()
	if err != nil {
		return err
	}
	defer func() { _ = filler.Close() }()
	part := max(p.Leases/firstPart, 1)
	var took time.Duration
	for _, step := range []struct {
		leases int
		row    *report.Row
	}{{part, &rows.partMemory}, {p.Leases - part, &rows.memory}} {
		began := time.Now()
		if err := filler.Fill(ctx, min(fillers, max(step.leases, 1)), step.leases); err != nil {
			return err
		}
		took += time.Since(began)
		if step.row.Figures[h.System], err = h.resident(ctx, p.Settle); err != nil {
			return err
		}
	}
	rows.fill.Figures[h.System] = []float64{took.Seconds()}
	ready, err := h.restartLeader(ctx, filler)
	if err == nil {
		rows.ready.Figures[h.System] = []float64{ready.Seconds()}
	}
	return err
}

// resident returns the memory of each member in MiB, once it has settled.
func (h Hoard) resident(ctx context.Context, settle time.Duration) ([]float64, error) {
	if !peer.Pause(ctx, settle) {
		return nil, context.Cause(ctx)
	}
	var all []float64
	for _, pid := range h.Cluster.Pids() {
		bytes, err := proc.ResidentBytes(pid)
		if err != nil {
			return nil, err
		}
		all = append(all, float64(bytes)/(1<<20))
	}
	return all, nil
}

// restartLeader kills the leader, acquires a key when there is another one, and returns
// how long the old one, started again, takes until it has that key.
func (h Hoard) restartLeader(ctx context.Context, filler client.Filler) (time.Duration, error) {
	member, err := h.Cluster.Leader(ctx)
	if err != nil {
		return 0, err
	}
	if err := h.Cluster.Kill(member); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	key, err := mark(ctx, filler)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := h.Cluster.Restart(member); err != nil {
		return 0, err
	}
	return h.awaitKey(ctx, filler, memberKey{h.Cluster.Addrs()[member], key}, began)
}

// mark acquires a key as soon as there is a leader.
func mark(ctx context.Context, filler client.Filler) (string, error) {
	for {
		key, err := briefly(ctx, filler.Mark)
		if err == nil {
			return key, nil
		}
		if !peer.Pause(ctx, writerPause) {
			return "", fmt.Errorf("acquire a key while the leader is down: %w", err)
		}
	}
}

type memberKey struct{ addr, key string }

// awaitKey returns how long after began the member has the key.
func (h Hoard) awaitKey(ctx context.Context, filler client.Filler, m memberKey, began time.Time) (time.Duration, error) {
	var dialer net.Dialer
	for {
		// A client that has been refused a connection waits before it tries again: it
		// must not ask before somebody listens.
		conn, err := dialer.DialContext(ctx, "tcp", m.addr)
		has := false
		if err == nil {
			_ = conn.Close()
			has, err = briefly(ctx, func(ctx context.Context) (bool, error) { return filler.Has(ctx, m.addr, m.key) })
		}
		if has {
			return time.Since(began), nil
		}
		if !peer.Pause(ctx, writerPause) {
			return 0, fmt.Errorf("%s does not catch up: %w", m.addr, errors.Join(err, context.Cause(ctx)))
		}
	}
}

// briefly calls something that may be starting, and gives up soon.
func briefly[T any](ctx context.Context, call func(context.Context) (T, error)) (T, error) {
	const patience = 500 * time.Millisecond
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return call(ctx)
}
