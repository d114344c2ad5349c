package faulty

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// slowness is how much longer a write takes on a slow disk.
const slowness = 100 * time.Millisecond

// ErrMadeUp is how a write fails on a failing disk.
var ErrMadeUp = errors.New("input/output error (made up)")

// errReadOnly is how a write fails on a disk that takes none.
var errReadOnly = &fs.PathError{Op: "write", Path: "made up", Err: syscall.EROFS}

// Disk decides what becomes of the writes of a node's log, vote and snapshots. It is
// healthy until it is told otherwise. Safe for concurrent use. Make one with [NewDisk].
type Disk struct {
	// Tell hears of each snapshot, from any goroutine, and of this process's death. Set it
	// before Open; nil for nobody.
	Tell func(control.Event)
	// Die ends this process as kill -9 does. Set it before Open; nil for just that.
	Die func()

	mu      sync.Mutex
	state   nemesis.DiskState
	changed chan struct{} // closed when the state is another
}

// NewDisk returns a healthy disk.
func NewDisk() *Disk { return &Disk{changed: make(chan struct{})} }

// Set puts the disk into a state. Writes that hang go on then, if it is another.
func (d *Disk) Set(state nemesis.DiskState) error {
	known := []nemesis.DiskState{
		nemesis.DiskHealthy, nemesis.DiskFull, nemesis.DiskFailing, nemesis.DiskReadOnly, nemesis.DiskSlow, nemesis.DiskHanging, nemesis.DiskDeadly,
	}
	if !slices.Contains(known, state) {
		return fmt.Errorf("there is no state %q of a disk", state)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
	close(d.changed)
	d.changed = make(chan struct{})
	return nil
}

func (d *Disk) look() (nemesis.DiskState, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state, d.changed
}

// Open opens the stores of a node on the disk.
func (d *Disk) Open(cfg disk.Config) (*disk.Stores, error) {
	wrap := cfg.Wrap
	cfg.Wrap = func(m disk.Medium) disk.Medium {
		if wrap != nil {
			m = wrap(m)
		}
		return medium{m, d}
	}
	cfg.Free = func(string) (uint64, error) {
		if state, _ := d.look(); state == nemesis.DiskFull {
			return 0, nil
		}
		return math.MaxInt64, nil
	}
	stores, err := disk.Open(cfg)
	if err == nil {
		stores.Snapshots = snapshots{SnapshotStore: stores.Snapshots, logs: stores.Logs, faults: d}
	}
	return stores, err
}

// medium is what is between a node and its disk.
type medium struct {
	disk.Medium
	faults *Disk
}

func (m medium) Write(c disk.Change) error {
	for {
		state, changed := m.faults.look()
		switch state {
		case nemesis.DiskFailing:
			return ErrMadeUp
		case nemesis.DiskReadOnly:
			return errReadOnly
		case nemesis.DiskSlow:
			time.Sleep(slowness)
			return m.Medium.Write(c)
		case nemesis.DiskHanging:
			<-changed
		default: // a full disk is seen before anything is written, and votes still fit
			return m.Medium.Write(c)
		}
	}
}
