package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/jepsen-like/workload"
)

// holderKeys is how many keys the holders of a run contend for.
const holderKeys = 3

// trial is one run: a campaign done once, in a folder.
type trial struct {
	campaign
	out    io.Writer // for the progress
	dir    string
	prefix string // of all keys

	now    func() time.Duration
	tally  *tally
	ledger *workload.Ledger
	ps     *programs
	each   []workload.Endpoint // each node by itself
	follow *workload.Watchers
	warned []string // what was amiss and is no violation
	ended  bool     // before its time
	loaded bool     // there is something to judge
}

// result is what came of a trial.
type result struct {
	run    history.Run
	warned []string
	ended  bool // before its time, by the user
	loaded bool // there is something to judge
}

// try runs c once, in dir. An error means that the harness could not do its work.
func try(ctx context.Context, out io.Writer, c campaign, dir string) (result, error) {
	file, err := os.Create(filepath.Join(dir, historyFile))
	if err != nil {
		return result{}, err
	}
	origin := workload.Monotonic()
	recorder := history.NewRecorder(file)
	t := &trial{
		campaign: c, out: out, dir: dir, prefix: fmt.Sprintf("chaos/%d-%s/", c.seed, rand.Text()[:8]),
		now: func() time.Duration { return workload.Monotonic() - origin }, tally: newTally(recorder),
		ledger: workload.NewLedger(origin, recorder),
	}
	t.ps = &programs{now: t.now, sink: recorder, ledger: t.ledger}
	began := time.Now()
	err = errors.Join(t.saveSchedule(), t.run(ctx))
	recorder.SetInfo(t.info(began))
	err = errors.Join(err, recorder.Err(), file.Close())
	return result{run: recorder.Run(), warned: t.warned, ended: t.ended, loaded: t.loaded}, err
}

func (t *trial) info(began time.Time) history.Info {
	info := history.Info{
		Name: "chaos", Seed: int64(t.seed), Began: began, Length: t.now(),
		Options: map[string]string{optionNode: t.node, optionRepeat: t.repeat, optionRecovery: t.bound.String()},
	}
	if t.broken != "" {
		info.Options[optionBroken] = t.broken
	}
	if len(t.left) > 0 {
		info.Options[optionLeftOut] = leftOut(t.left)
	}
	if t.workloadCommand != "" {
		info.Options[optionWorkload] = t.workloadCommand
	}
	for _, node := range t.each {
		info.Nodes = append(info.Nodes, node.Node)
	}
	return info
}

func (t *trial) saveSchedule() error {
	text, err := t.schedule.Encode()
	return errors.Join(err, os.WriteFile(filepath.Join(t.dir, scheduleFile), text, 0o644))
}

// run starts the cluster, has the load and the faults run, and takes down what the
// cluster has in the end.
func (t *trial) run(ctx context.Context) error {
	sys, err := t.open(ctx)
	if err != nil {
		return err
	}
	err = t.runOn(ctx, sys)
	return errors.Join(err, sys.close())
}

func (t *trial) runOn(ctx context.Context, sys system) error {
	closeNodes, err := t.dialNodes(sys)
	if err != nil {
		return err
	}
	defer closeNodes()
	if err := t.await(ctx); err != nil {
		return err
	}
	closeWatched, err := t.startWatchers(sys.endpoints())
	if err != nil {
		return err
	}
	defer closeWatched()
	if err := t.startPrograms(sys.endpoints()); err != nil {
		return errors.Join(err, t.ps.stop())
	}
	t.loaded = true
	failed := t.underLoad(ctx, sys)
	t.ended = ctx.Err() != nil
	failed = errors.Join(failed, t.ps.stop())
	t.ledger.Close()
	// What was found out until here is judged, also after Ctrl-C.
	t.takeDown(context.WithoutCancel(ctx), sys.endpoints())
	return failed
}

// dialNodes connects to each node by itself.
func (t *trial) dialNodes(sys system) (closeAll func(), err error) {
	var stores []*workload.Direct
	closeAll = func() {
		for _, store := range stores {
			_ = store.Close() // nothing is asked any more
		}
	}
	for i, addr := range sys.endpoints() {
		store, err := workload.NewDirect(addr, nil)
		if err != nil {
			closeAll()
			return nil, err
		}
		stores = append(stores, store)
		t.each = append(t.each, workload.Endpoint{Node: fmt.Sprintf("n%d", i+1), Store: store})
	}
	return closeAll, nil
}

// startTimeout bounds the time until a new cluster serves, brokenTimeout that until one
// does that is broken on purpose: some of its nodes never may, which is for the checks.
const (
	startTimeout  = 60 * time.Second
	brokenTimeout = 5 * time.Second
)

// await returns once every node serves, and nothing was done yet.
func (t *trial) await(ctx context.Context) error {
	timeout := startTimeout
	if t.broken != "" {
		timeout = brokenTimeout
	}
	var served []history.Recovery
	sink := &probeSink{tally: t.tally, add: func(r history.Recovery) { served = append(served, r) }}
	workload.Probe(ctx, workload.ProbeOptions{
		Endpoints: t.each, Prefix: t.prefix + "start/", Now: t.now, Healed: t.now(), Bound: timeout, Sink: sink,
	})
	if ctx.Err() != nil {
		return fmt.Errorf("ended before the cluster served: %w", context.Cause(ctx))
	}
	for _, r := range served {
		if r.Served < 0 && t.broken == "" {
			return fmt.Errorf("%s did not serve within %v, before anything was done to it", r.Node, timeout)
		}
	}
	return nil
}

// probeSink has a probe's recoveries go somewhere else than into the history.
type probeSink struct {
	*tally
	mu  sync.Mutex
	add func(history.Recovery)
}

// AddRecovery takes the place of the recorder's.
func (s *probeSink) AddRecovery(r history.Recovery) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(r)
}

// underLoad has clients and faults run, and returns when the schedule is done.
func (t *trial) underLoad(ctx context.Context, sys system) error {
	load, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	all.Go(func() {
		workload.Clients(load, workload.ClientOptions{
			Seed: t.seed, Clients: t.clients, Keys: t.keys, Prefix: t.prefix, Endpoints: t.each, Now: t.now,
			Pause: t.pause, Rotate: 20 * time.Second, Sink: t.tally,
		})
	})
	all.Go(func() { t.watchDigests(load, sys.endpoints()) })
	all.Go(func() {
		progress{out: t.out, length: t.now() + t.schedule.Time, now: t.now, tally: t.tally, ledger: t.ledger}.loop(load)
	})
	return nemesis.Run(ctx, t.schedule, target{sys, t.ps}, nemesis.Hooks{
		Now: t.now, Fault: t.tally.AddFault, Active: t.tally.setActive, Healed: t.measure,
	})
}

// measure finds out how soon each node serves after the faults of a phase.
func (t *trial) measure(ctx context.Context, healed time.Duration) {
	workload.Probe(ctx, workload.ProbeOptions{
		Endpoints: t.each, Prefix: fmt.Sprintf("%sprobe/%d/", t.prefix, healed), Now: t.now,
		Healed: healed, Bound: t.bound, Sink: t.tally,
	})
}

// startPrograms starts the holders, or the program to judge.
func (t *trial) startPrograms(endpoints []string) error {
	for _, dir := range []string{"holders", "resource"} {
		if err := os.MkdirAll(filepath.Join(t.dir, dir), 0o755); err != nil {
			return err
		}
	}
	for n := range t.holders {
		p, err := t.program(n, endpoints)
		if err != nil {
			return err
		}
		if err := t.ps.start(p); err != nil {
			return err
		}
	}
	return nil
}
