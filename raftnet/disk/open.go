package disk

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/prometheus/client_golang/prometheus"
)

// Config says where the storage of a node is and what is to be done when it fails.
// Dir, Logger, Registry, OnFailure, End and Leads have to be set.
type Config struct {
	// Dir is the node's data directory. It exists, and is this process's.
	Dir string
	// Begun says that the directory has had a log before: that there is none is then
	// a [*CorruptError], and otherwise a log is made.
	Begun bool
	// Log is how the log is to be kept. A log of another kind is converted at the start:
	// a crash leaves the one or the other.
	Log      LogKind
	Logger   hclog.Logger
	Registry prometheus.Registerer

	// OnFailure is called once, with a [*StorageError], when a write, an fsync or a
	// read has failed, before that is returned to anybody, and by the goroutine that
	// met it; from then on every write fails with the same error. raft panics when it
	// cannot write its term, so OnFailure should end the process. It must not wait
	// for a store, nor call one.
	OnFailure func(error)
	// End is called once, with a [*HangError], when the disk hangs. It has to end the
	// process at once, touch no disk (no log line: that has been written, if it could
	// be) and wait for nobody.
	End func(error)
	// Leads reports whether the node leads, be it a term that is not opened yet. It is
	// called ten times a second and must not wait.
	Leads func() bool

	// Free returns how many bytes can still be written where dir is; nil asks the
	// system.
	Free func(dir string) (uint64, error)
	// Reserve is how many bytes have to be free for the log to be written, unless
	// twice the biggest batch of entries is more; 0 stands for 64 MiB.
	Reserve uint64
	// Wake wakes the watchdog, every 100 ms; nil stands for a ticker.
	Wake <-chan time.Time
	// Wrap, if set, returns what takes the place of the real medium, to make it fail.
	Wrap func(Medium) Medium
}

func (c Config) withDefaults() Config {
	if c.Free == nil {
		c.Free = freeBytes
	}
	if c.Reserve == 0 {
		c.Reserve = defaultReserve
	}
	return c
}

func (c Config) validate() error {
	if c.Dir == "" || c.Logger == nil || c.Registry == nil || c.OnFailure == nil || c.End == nil || c.Leads == nil {
		return errors.New("storage: Dir, Logger, Registry, OnFailure, End and Leads have to be set")
	}
	return c.Log.valid()
}

// Stores are the open storage of a node. All of it is safe for concurrent use.
type Stores struct {
	// Logs, Stable and Snapshots are for raft.
	Logs      raft.LogStore
	Stable    raft.StableStore
	Snapshots raft.SnapshotStore

	metrics   *metrics
	latch     *latch
	watchdog  *watchdog
	space     *space
	guard     *guard
	journal   *journal
	snapshots *snapshotStore

	stop    chan struct{}
	joined  sync.WaitGroup
	closing sync.Once
	closed  error
}

// Open verifies all that the directory has, and opens it. It refuses, with nothing
// changed, what is damaged ([*CorruptError]) and what does not join ([*GapError]); a
// snapshot that is damaged is only passed over, if the one before it and the log make
// up for it.
func Open(cfg Config) (*Stores, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Stores{metrics: newMetrics(cfg.Registry), stop: make(chan struct{})}
	s.latch = newLatch(cfg, s.metrics)
	s.watchdog = newWatchdog(cfg, s.metrics)
	s.space = newSpace(cfg, s.metrics, s.watchdog)
	for _, step := range []func(Config) error{s.openLog, s.openSnapshots, func(Config) error { return s.metrics.register(s) }} {
		if err := step(cfg); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	s.joined.Go(func() { s.watchdog.watchLoop(cfg.Wake, s.stop) })
	s.joined.Go(func() { s.space.tendLoop(s.stop) })
	return s, nil
}

func (s *Stores) openLog(cfg Config) error {
	path, kind, err := settleLog(cfg)
	if err != nil {
		return err
	}
	o, err := openKind(path, kind)
	if err != nil {
		return err
	}
	if cfg.Wrap != nil {
		o.medium = cfg.Wrap(o.medium)
	}
	s.guard = &guard{inner: o.medium, room: o.room, path: path, latch: s.latch, watchdog: s.watchdog}
	s.journal = &journal{medium: s.guard, path: path, bytes: o.bytes, latch: s.latch}
	s.journal.newest.Store(o.image.head)
	s.Logs = &logStore{journal: s.journal, guard: s.guard, space: s.space}
	s.Stable = &ballot{journal: s.journal}
	return nil
}

func (s *Stores) openSnapshots(cfg Config) error {
	var err error
	if s.snapshots, err = openSnapshots(cfg, s); err != nil {
		return err
	}
	s.Snapshots = s.snapshots
	usable, err := s.snapshots.List()
	if err != nil {
		return err
	}
	h := s.journal.head()
	e := Extent{First: h.first, Last: h.last, Covered: h.covered}
	if len(usable) > 0 {
		e.Snapshot = usable[0].Index
	}
	if err := Continuous(cfg.Dir, e); err != nil {
		return err
	}
	// A process that ended just after it had finished a snapshot has not noted it.
	return s.journal.cover(e.Snapshot)
}

// Full reports whether the disk is full: what would grow is refused. A node should not
// stand for election then.
func (s *Stores) Full() bool { return s.space.full.Load() }

// Err returns the first failure, a [*StorageError]; nil if there was none.
func (s *Stores) Err() error { return s.latch.failure() }

// Close waits for the calls in progress and returns when nothing of the storage runs
// any more; while the disk hangs it does not return. raft has to be shut down before.
// Idempotent.
func (s *Stores) Close() error {
	s.closing.Do(func() {
		close(s.stop)
		s.joined.Wait()
		if s.guard != nil {
			s.closed = s.guard.Close()
		}
		s.metrics.unregister()
	})
	return s.closed
}
