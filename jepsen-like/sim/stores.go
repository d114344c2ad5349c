package sim

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// openStores opens the real storage of a node on the life's drive.
func (l *life) openStores(cfg disk.Config) (*disk.Stores, error) {
	l.leads.Store(&cfg.Leads)
	cfg.Free, cfg.Reserve, cfg.Wake = l.drive.free, reserve, l.wake
	cfg.Wrap = func(m disk.Medium) disk.Medium { return &medium{m, l.drive} }
	stores, err := disk.Open(cfg)
	if err != nil {
		return nil, err
	}
	stores.Logs = &logs{stores.Logs, l.drive, l.notice}
	stores.Stable = &stable{stores.Stable, l.drive}
	stores.Snapshots = &snapshots{stores.Snapshots, l.drive}
	return stores, nil
}

// The stores as raft gets them: each write takes its time and its turn.
type (
	logs struct {
		raft.LogStore
		drive *drive
		// notice hears of entries before they are written.
		notice func([]*raft.Log)
	}
	stable struct {
		raft.StableStore
		drive *drive
	}
	snapshots struct {
		raft.SnapshotStore
		drive *drive
	}
	sink struct {
		raft.SnapshotSink
		drive *drive
	}
)

func (s *logs) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

func (s *logs) StoreLogs(entries []*raft.Log) error {
	s.notice(entries)
	return s.drive.use(func() error { return s.LogStore.StoreLogs(entries) })
}

func (s *logs) DeleteRange(low, high uint64) error {
	return s.drive.use(func() error { return s.LogStore.DeleteRange(low, high) })
}

func (s *stable) Set(key, value []byte) error {
	return s.drive.use(func() error { return s.StableStore.Set(key, value) })
}

func (s *stable) SetUint64(key []byte, value uint64) error {
	return s.drive.use(func() error { return s.StableStore.SetUint64(key, value) })
}

func (s *snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, trans raft.Transport) (raft.SnapshotSink, error) {
	inner, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return &sink{inner, s.drive}, nil
}

func (s *sink) Close() error { return s.drive.use(s.SnapshotSink.Close) }

// notice holds what is about to be written against what others have written.
func (l *life) notice(entries []*raft.Log) {
	if l.ctx.Err() != nil {
		return // a ghost's log is nobody's
	}
	c := l.machine.cluster
	if wrong := c.logbook.note(entries); wrong != "" {
		c.event(l.machine, differs, wrong)
	}
}

// The watchdog of a node wakes up ten times a second. Here it does so only while its
// disk may hang, and for as long after as it looks back.
const (
	wakeInterval = 100 * time.Millisecond
	wakesAfter   = 60
)

// wakeLoop wakes the watchdog of l until its disk has been well for a while.
func (l *life) wakeLoop() {
	ticker := time.NewTicker(wakeInterval)
	defer ticker.Stop()
	for well := 0; well < wakesAfter; well++ {
		select {
		case <-l.ctx.Done():
			return
		case now := <-ticker.C:
			select {
			case l.wake <- now:
			default: // it is not open yet, or has ended
			}
		}
		if l.drive.is(nemesis.DiskHanging) {
			well = 0
		}
	}
	l.waking.Store(false)
}
