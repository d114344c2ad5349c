package raftnet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

// Config are the parts of a [Node].
type Config struct {
	// ID is the node's name.
	ID string
	// Settings are the bounds of the cluster's state. They are used once, by the
	// cluster's first leader.
	Settings fsm.Settings
	FSM      *fsm.FSM
	// Transport carries raft's messages; the node closes it.
	Transport Transport
	// Neighbours, if not nil, tell the node that the leader's process is gone, so that
	// another need not wait for a timeout. [Port] is one.
	Neighbours Neighbours
	// Stores have been begun with [Begin]. The node does not close them.
	Stores Stores
	// Abstain reports whether the node must not stand for election now: it could not
	// write what it would have to. It must not wait.
	Abstain func() bool
	Clock   lease.Clock
	Tuning  Tuning
	Logger  hclog.Logger
	Metrics *Metrics
}

// Stores are where raft keeps what it must not lose.
type Stores struct {
	Logs      raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore
}

// Tuning sets how fast a cluster reacts and what it keeps. Shorter elections mean
// shorter outages when a leader's machine vanishes, and needless ones when a disk or a
// link stalls.
type Tuning struct {
	// Heartbeat is how long a follower waits for its leader before it stands for
	// election, and a candidate for votes. It must exceed the longest stall of a disk,
	// since heartbeats wait for writes.
	Heartbeat time.Duration
	// Tick is how often the leader writes its clock down while leases run and nothing
	// else is written: a failover makes leases longer by at most this and the time
	// without a leader.
	Tick time.Duration
	// SnapshotEntries is after how many entries a snapshot is taken, SnapshotInterval
	// how often that is looked at.
	SnapshotEntries  uint64
	SnapshotInterval time.Duration
	// TrailingEntries stay in the log after a snapshot, so that a follower that is a
	// little behind, or is receiving a snapshot, can catch up from the log. With too
	// few a busy cluster installs snapshots for ever.
	TrailingEntries uint64
}

// DefaultTuning suits nodes on one network.
func DefaultTuning() Tuning {
	return Tuning{Heartbeat: time.Second, Tick: time.Second, SnapshotEntries: 8192, SnapshotInterval: 30 * time.Second, TrailingEntries: 10240}
}

const (
	// entriesPerAppend and entriesCached bound memory: an entry has up to
	// [fsm.MaxEntryBytes].
	entriesPerAppend = 256
	entriesCached    = 256
	// stopWait bounds how long a stop waits for raft to answer what it was given.
	stopWait = 2 * time.Second
)

// Node is one node's part in the consensus. All methods are safe for concurrent use.
type Node struct {
	cfg     Config
	raft    *raft.Raft
	witness *witness
	gate    *gate
	log     *pacedLog
	queue   *queue
	lines   *lines
	// spill is what is planned and waits for the next entry; packLoop's alone.
	spill []*item
	// latest is how many items the latest entry has; packLoop's alone.
	latest int
	// inFlight is how many entries are on their way, and settled tells packLoop that one is
	// not any more.
	inFlight atomic.Int32
	settled  chan struct{}
	reads    *readers

	ctx     context.Context
	stop    context.CancelFunc
	joined  sync.WaitGroup
	answers sync.WaitGroup // waits for raft's answers; see await

	// reign is the term that this node has opened as the leader; nil if none.
	reign atomic.Pointer[reign]
	// reopen asks leadLoop to look at the term again.
	reopen chan struct{}
	// turned tells packLoop that the reign has changed.
	turned chan struct{}
	// entries counts what was proposed, for the tick.
	entries atomic.Uint64

	closing sync.Once
}

// Open starts the node. On an error the transport is closed too.
func Open(cfg Config) (*Node, error) {
	n := &Node{
		cfg: cfg, witness: newWitness(cfg.Transport, cfg.Abstain), queue: newQueue(), reads: newReaders(),
		reopen: make(chan struct{}, 1), turned: make(chan struct{}, 1), settled: make(chan struct{}, 1),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.lines = newLines(n.ctx, n.queue, cfg.Metrics)
	n.lines.now, n.lines.reading = cfg.Clock.Monotonic, n.Reading
	if err := n.startRaft(); err != nil {
		n.stop()
		return nil, err
	}
	cfg.Metrics.watch(n)
	n.joined.Go(n.leadLoop)
	n.joined.Go(n.packLoop)
	n.joined.Go(n.lineLoop)
	n.joined.Go(n.tickLoop)
	n.joined.Go(n.confirmLoop)
	if cfg.Neighbours != nil {
		n.joined.Go(newProber(n, cfg.Neighbours).loop)
	}
	return n, nil
}

func (n *Node) raftConfig() *raft.Config {
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(n.cfg.ID)
	conf.Logger = n.cfg.Logger.Named("raft")
	conf.HeartbeatTimeout = n.cfg.Tuning.Heartbeat
	conf.ElectionTimeout = n.cfg.Tuning.Heartbeat
	conf.LeaderLeaseTimeout = n.cfg.Tuning.Heartbeat / 2
	conf.MaxAppendEntries = entriesPerAppend
	conf.BatchApplyCh = true
	conf.TrailingLogs = n.cfg.Tuning.TrailingEntries
	conf.SnapshotThreshold = n.cfg.Tuning.SnapshotEntries
	conf.SnapshotInterval = n.cfg.Tuning.SnapshotInterval
	return conf
}

// Close stops the node and returns when its goroutines have ended. A leader first
// answers what it has in hand and gives its place to another. Idempotent.
func (n *Node) Close() error {
	var err error
	n.closing.Do(func() {
		n.drain()
		n.handOver()
		n.stop()
		n.joined.Wait()
		n.waitAnswers()
		err = n.raft.Shutdown().Error()
		n.cfg.Metrics.unwatch()
	})
	return err
}

// drain refuses what comes and waits until what came before has its outcome: a last
// tick, which nothing overtakes, has one then too.
func (n *Node) drain() {
	ctx, cancel := context.WithTimeout(n.ctx, stopWait)
	defer cancel()
	n.lines.end(fmt.Errorf("this node is stopping: %w", lease.ErrUnavailable))
	last := newCall(ctx, [][]byte{nil})
	n.queue.closeWith(last)
	if n.raft.State() != raft.Leader {
		return
	}
	select {
	case <-last.done:
	case <-ctx.Done():
	}
}

// handOver transfers leadership, if this node has it and there is anybody to take it.
func (n *Node) handOver() {
	if n.raft.State() != raft.Leader || len(n.Members()) == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(n.ctx, n.cfg.Tuning.Heartbeat+stopWait)
	defer cancel()
	if err := n.await(ctx, n.raft.LeadershipTransfer()); err != nil {
		n.cfg.Logger.Warn("could not hand over leadership; the others will elect a leader", "error", err)
	}
}

// errNoAnswer says that raft has not answered in time.
var errNoAnswer = errors.New("no answer from raft")

// await waits for a future as long as ctx lasts. raft does not answer all futures
// when it stops, so the wait itself, which cannot be ended, has a goroutine.
func (n *Node) await(ctx context.Context, future raft.Future) error {
	answer := make(chan error, 1)
	n.answers.Go(func() { answer <- future.Error() })
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNoAnswer, context.Cause(ctx))
	}
}

// waitAnswers gives raft time to answer what it was given, when nothing more is.
func (n *Node) waitAnswers() {
	done := make(chan struct{})
	go func() {
		n.answers.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(stopWait):
		n.cfg.Logger.Warn("raft has not answered everything it was given")
	}
}

// Elected reports whether this node is the leader for raft, whether it has opened its
// term or not.
func (n *Node) Elected() bool { return n.raft.State() == raft.Leader }

// Leads reports whether this node leads and has opened its term, so that it can take
// mutations and reads. It is no proof: see [Node.Confirm].
func (n *Node) Leads() bool { return n.current() != nil }

// current returns the reign if it is of raft's present term.
func (n *Node) current() *reign {
	r := n.reign.Load()
	if r == nil || n.raft.State() != raft.Leader || n.raft.CurrentTerm() != r.term {
		return nil
	}
	return r
}

// Reading returns the leader's reading of the cluster clock, and false if this node
// does not lead.
func (n *Node) Reading() (lease.Instant, bool) {
	r := n.current()
	if r == nil {
		return 0, false
	}
	return r.reading(n.cfg.Clock.Monotonic()), true
}

// Leader returns the id of the leader as this node knows it, or "".
func (n *Node) Leader() string {
	_, id := n.raft.LeaderWithID()
	return string(id)
}

// Term returns raft's present term.
func (n *Node) Term() uint64 { return n.raft.CurrentTerm() }

// ConfiguredMember is a member of the latest configuration.
type ConfiguredMember struct {
	ID    string
	Addr  string
	Voter bool
}

// Members returns the members of the latest configuration, committed or not.
func (n *Node) Members() []ConfiguredMember {
	future := n.raft.GetConfiguration()
	if future.Error() != nil {
		return nil
	}
	var members []ConfiguredMember
	for _, s := range future.Configuration().Servers {
		members = append(members, ConfiguredMember{ID: string(s.ID), Addr: string(s.Address), Voter: s.Suffrage == raft.Voter})
	}
	return members
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
