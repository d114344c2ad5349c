package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/jepsen-like/workload"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// Options are what [Run] works with.
type Options struct {
	// Schedule is what is done to the cluster; see [Plan]. Its seed also makes all else
	// that is random, except for the order in which goroutines run.
	Schedule nemesis.Schedule
	// Dir is where the nodes' folders are made; best in memory.
	Dir string
	// Log is that of [Config].
	Log disk.LogKind
	// Logger hears of everything that nodes log; nil for nobody.
	Logger hclog.Logger
	// Out takes the history down while the run goes on; nil for nobody.
	Out io.Writer
}

// Plan returns the schedule of a simulation. It has all faults there are but two,
// kill-snapshot and disk-read-only, which its disks do not know, and except that
// under an even seed all clocks are right, so that a lease which ends a little early
// is not mistaken for one that was counted on a fast clock.
func Plan(seed uint64, nodes int, length time.Duration) nemesis.Schedule {
	kinds, err := nemesis.Parse([]string{"all"})
	if err != nil {
		panic(err) // all is always known
	}
	kinds = slices.DeleteFunc(kinds, func(k nemesis.Kind) bool { return k == nemesis.KillSnapshot || k == nemesis.DiskIsReadOnly })
	if seed%2 == 0 {
		kinds = nemesis.Possible(kinds, nemesis.Clock)
	}
	return nemesis.Plan(nemesis.Options{Seed: seed, Nodes: nodes, Holders: holders, Time: length, Kinds: kinds})
}

const (
	holders    = 4
	holderKeys = 2
	clients    = 5
	clientKeys = 3
	restTime   = 120 * time.Millisecond
	// rotate keeps the history of each key short enough to be checked.
	rotate = 10 * time.Second
	// recovery bounds how long nodes may take to serve once all is healed.
	recovery = 30 * time.Second
	// digestTimeout bounds the wait for digests of two nodes, digestPause is between looks.
	digestTimeout = 5 * time.Second
	digestPause   = 200 * time.Millisecond
	// endTimeout bounds the look at what the cluster has in the end.
	endTimeout = time.Minute
)

// tuning has snapshots taken every few seconds, so that a short run has some.
func tuning(random *rand.Rand) raftnet.Tuning {
	t := raftnet.DefaultTuning()
	t.SnapshotInterval = 4 * time.Second
	t.SnapshotEntries = 64
	if random.IntN(2) == 0 { // else followers catch up from the log
		t.TrailingEntries = 32
	}
	return t
}

// Run has a cluster, clients and holders go through a schedule, and returns what
// happened. It has to be called in a bubble of package testing/synctest, and nothing of
// it is left when it returns. An error is one of the simulation itself.
func Run(o Options) (history.Run, error) {
	s := o.Schedule
	recorder := history.NewRecorder(o.Out)
	cluster, err := NewCluster(Config{
		Seed: s.Seed, Nodes: s.Nodes, Holders: s.Holders, Dir: o.Dir, Log: o.Log, Logger: o.Logger, Recorder: recorder,
		Tuning: tuning(rand.New(rand.NewPCG(s.Seed, 0x74756e65))),
	})
	if err != nil {
		return history.Run{}, err
	}
	info := history.Info{Name: "simulation", Seed: int64(s.Seed), Began: cluster.began, Length: s.Time}
	for i := range s.Nodes {
		info.Nodes = append(info.Nodes, nodeName(i))
	}
	recorder.SetInfo(info)
	r := &runner{cluster: cluster, recorder: recorder, seed: s.Seed}
	err = r.run(s)
	return recorder.Run(), errors.Join(err, recorder.Err())
}

// runner is one run.
type runner struct {
	cluster   *Cluster
	recorder  *history.Recorder
	seed      uint64
	endpoints []workload.Endpoint
	watched   []workload.WatchEndpoint
	client    *holder.Client
	watchers  *workload.Watchers
	last      uint64 // the latest index in the stored history
}

func (r *runner) run(s nemesis.Schedule) (err error) {
	c := r.cluster
	defer func() { err = errors.Join(err, c.Close()) }()
	if r.client, err = c.Client(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.client.Close()) }()
	for _, addr := range c.Endpoints() {
		direct, err := workload.NewDirect(addr, c.dialFrom(outside))
		if err != nil {
			return err
		}
		defer func() { _ = direct.Close() }()
		r.endpoints = append(r.endpoints, workload.Endpoint{Node: nodeName(len(r.endpoints)), Store: direct})
		client, err := c.Client(addr)
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }()
		r.watched = append(r.watched, workload.WatchEndpoint{Node: nodeName(len(r.watched)), Watcher: client})
	}
	c.StartAll()
	if err := r.found(); err != nil {
		return err
	}
	r.watchers = workload.StartWatchers(workload.WatchOptions{
		Seed: r.seed, Any: r.client, Endpoints: r.watched, Now: c.Now, Sink: r.recorder,
	})
	load, stop := context.WithCancel(context.Background())
	var loaded sync.WaitGroup
	loaded.Go(func() { r.ask(load) })
	failures := make([]error, s.Holders)
	ledger := workload.NewLedger(0, r.recorder)
	resource := workload.NewMemoryResource(c.Now)
	for i := range s.Holders {
		loaded.Go(func() { failures[i] = r.hold(load, i, ledger, resource) })
	}
	err = nemesis.Run(context.Background(), s, c, nemesis.Hooks{Now: c.Now, Fault: r.recorder.AddFault, Healed: r.healed})
	stop()
	loaded.Wait()
	ledger.Close()
	err = errors.Join(err, errors.Join(failures...), r.end())
	r.finishWatching()
	return err
}

// finishWatching has watchers come to where the stored history ends.
func (r *runner) finishWatching() {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	r.watchers.Finish(ctx, r.last)
}

// found waits until the new cluster serves.
func (r *runner) found() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if _, err := r.client.Get(ctx, lease.GetRequest{Key: "found"}); err != nil {
		return fmt.Errorf("the new cluster does not serve: %w", err)
	}
	return nil
}

// ask has clients ask for anything.
func (r *runner) ask(ctx context.Context) {
	workload.Clients(ctx, workload.ClientOptions{
		Seed: r.seed, Clients: clients, Keys: clientKeys, Prefix: "c/", Endpoints: r.endpoints,
		Now: r.cluster.Now, Pause: restTime, Rotate: rotate, Sink: r.recorder,
	})
}

// hold has holder i contend for its key.
func (r *runner) hold(ctx context.Context, i int, ledger *workload.Ledger, resource workload.Resource) error {
	name := fmt.Sprintf("h%d", i+1)
	random := rand.New(rand.NewPCG(r.seed, 0x74746c00+uint64(i)))
	return r.cluster.holders[i].hold(ctx, workload.HoldOptions{
		Seed: r.seed + uint64(i)<<32, Name: name, Key: fmt.Sprintf("h/k%d", i%holderKeys+1),
		TTL:      800*time.Millisecond + time.Duration(random.IntN(22))*100*time.Millisecond,
		Resource: resource, Sink: ledger.Of(name),
	})
}

// healed measures how soon all nodes serve.
func (r *runner) healed(ctx context.Context, healed time.Duration) {
	workload.Probe(ctx, workload.ProbeOptions{
		Endpoints: r.endpoints, Prefix: "probe/", Now: r.cluster.Now, Healed: healed, Bound: recovery, Sink: r.recorder,
	})
	r.digests(ctx)
}

// digests takes down what nodes tell of their state. It gives them some time until at
// least two tell something: one that has just started knows of no digests yet.
func (r *runner) digests(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	for ctx.Err() == nil {
		status, err := r.client.Status(ctx)
		if err == nil && status.DigestIndex > 0 && (len(status.Digests) > 1 || r.cluster.Nodes() == 1) {
			for name, sum := range status.Digests {
				r.recorder.AddDigests(history.Digest{Node: name, Index: status.DigestIndex, Sum: sum})
			}
			return
		}
		_ = rest(ctx, digestPause)
	}
}

// end takes down what the cluster has in the end.
func (r *runner) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	// The records first: what a holder does in between is in the history then.
	var records []lease.Record
	for token := ""; ; {
		page, err := r.client.List(ctx, lease.ListRequest{PageToken: token})
		if err != nil {
			return fmt.Errorf("list the cluster's records: %w", err)
		}
		for _, answer := range page.Answers {
			records = append(records, answer.Record)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	r.recorder.SetRecords(records)
	var stored []lease.Entry
	for token := ""; ; {
		page, err := r.client.History(ctx, lease.HistoryRequest{PageToken: token})
		if err != nil {
			return fmt.Errorf("read the cluster's history: %w", err)
		}
		stored = append(stored, page.Entries...)
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	for _, e := range stored {
		r.last = max(r.last, e.Index)
	}
	r.recorder.SetStored(stored)
	r.digests(ctx)
	return nil
}
