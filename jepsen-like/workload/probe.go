package workload

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// ProbeOptions are what [Probe] works with.
type ProbeOptions struct {
	// Endpoints are the nodes, each by itself.
	Endpoints []Endpoint
	// Prefix begins the names of the keys, which have to be of this probe only.
	Prefix string
	Now    func() time.Duration
	// Healed is when the last fault was healed.
	Healed time.Duration
	// Bound is how long to try, counted from Healed.
	Bound time.Duration
	Sink  interface {
		OpSink
		AddRecovery(history.Recovery)
	}
}

const (
	probeTimeout = time.Second
	probePause   = 50 * time.Millisecond
)

// Probe finds out how soon each node serves a linearizable read and a write, and
// returns when all do, the bound has passed, or ctx ends; then nothing is said of those
// that did not serve yet.
func Probe(ctx context.Context, o ProbeOptions) {
	var all sync.WaitGroup
	for _, to := range o.Endpoints {
		all.Go(func() { o.probe(ctx, to) })
	}
	all.Wait()
}

func (o ProbeOptions) probe(ctx context.Context, to Endpoint) {
	a := asker{now: o.Now, timeout: probeTimeout, sink: o.Sink}
	name := "probe-" + to.Node
	read := history.Op{Client: name, Kind: history.Get, Key: o.Prefix + to.Node}
	for n := 1; ; n++ {
		write := read
		write.Kind, write.Owner, write.TTL = history.Acquire, name, lease.MinTTL
		write.RequestID = fmt.Sprintf("%s-%d-%d", name, o.Healed, n)
		if served(a.ask(ctx, to, read)) && served(a.ask(ctx, to, write)) {
			o.Sink.AddRecovery(history.Recovery{Node: to.Node, Healed: o.Healed, Served: o.Now()})
			return
		}
		if o.Now()-o.Healed > o.Bound {
			o.Sink.AddRecovery(history.Recovery{Node: to.Node, Healed: o.Healed, Served: -1})
			return
		}
		if !sleep(ctx, probePause) {
			return
		}
	}
}

// served reports whether a node has done what it was asked, or has refused it for a
// reason that only a cluster that works can know.
func served(op history.Op) bool {
	return op.Outcome == history.OK || op.Outcome == history.Held || op.Outcome == history.Lost
}
