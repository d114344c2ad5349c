package sim

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/nemesis"
	"github.com/leasenode/leasenode/raftnet"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// medium is what is under a node's log, on a drive that hangs or fails when told.
type medium struct {
	disk.Medium
	drive *drive
}

func (m *medium) Write(c disk.Change) error {
	m.drive.hang()
	return m.drive.commit(func() error { return m.Medium.Write(c) })
}

// drive is the disk of one life of a node.
type drive struct {
	// fail is called when a write fails: the process ends.
	fail func()

	mu      sync.Mutex
	random  *rand.Rand
	state   nemesis.DiskState
	changed chan struct{} // closed, and made anew, when state changes
	turn    chan struct{} // held by who writes
	ended   bool          // the process has: nothing hangs any more

	// writing is held while the files of the log change.
	writing sync.Mutex
}

// A healthy disk takes from leastWrite to mostWrite for a write, a slow one up to
// slowWrite more.
const (
	leastWrite = 100 * time.Microsecond
	mostWrite  = 2 * time.Millisecond
	slowWrite  = 600 * time.Millisecond
)

func newDrive(seed uint64, state nemesis.DiskState) *drive {
	return &drive{random: rand.New(rand.NewPCG(seed, 0x6469736b)), state: state, changed: make(chan struct{}), turn: make(chan struct{}, 1)}
}

func (d *drive) set(state nemesis.DiskState) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return
	}
	d.state = state
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *drive) is(state nemesis.DiskState) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state == state
}

// end lets go of what hangs: it is a dead process's.
func (d *drive) end() {
	d.set(nemesis.DiskHealthy)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
}

// use does what writes, and takes the time that it takes. A crash meanwhile finds it on
// the disk if its moment has come, and otherwise not; either way nobody was told. Who
// has to wait for another writer waits here, on a channel: the product has a mutex for
// it, on which a bubble's time does not go on.
func (d *drive) use(write func() error) error {
	d.turn <- struct{}{}
	defer func() { <-d.turn }()
	before, after := d.times()
	time.Sleep(before)
	err := write()
	time.Sleep(after)
	return err
}

// times draws how long a write takes before and after its moment.
func (d *drive) times() (before, after time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return 0, 0
	}
	most := mostWrite
	if d.state == nemesis.DiskSlow {
		most += slowWrite
	}
	all := leastWrite + time.Duration(d.random.Int64N(int64(most-leastWrite)))
	before = time.Duration(d.random.Int64N(int64(all)))
	return before, all - before
}

// hang waits for as long as the drive hangs.
func (d *drive) hang() {
	for {
		d.mu.Lock()
		changed, hangs := d.changed, d.state == nemesis.DiskHanging
		d.mu.Unlock()
		if !hangs {
			return
		}
		<-changed
	}
}

// commit does what changes the files. On a disk that fails it is done or not, and the
// process ends before anybody hears of it.
func (d *drive) commit(write func() error) error {
	d.mu.Lock()
	failing := d.state == nemesis.DiskFailing && !d.ended
	late := failing && d.random.IntN(2) == 0
	d.mu.Unlock()
	if failing && !late {
		d.fail()
	}
	d.writing.Lock()
	err := write()
	d.writing.Unlock()
	if late {
		d.fail()
	}
	return err
}

// free is how much space there is. It is little enough that nodes make no spare file,
// which would cost time and show nothing.
func (d *drive) free(string) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == nemesis.DiskFull && !d.ended {
		return 3 << 20, nil
	}
	return 14 << 20, nil
}

// reserve goes with free.
const reserve = 4 << 20

// image copies what is on the disk, at this instant, to another folder, as the next
// life of the node shall find it. The state file is a cache and is left out.
func (d *drive) image(from, to string) error {
	d.writing.Lock()
	defer d.writing.Unlock()
	files, err := disk.LogFiles(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // it has not been made
		return err
	}
	for _, name := range append(files, raftnet.IdentityFile) {
		if err := copyFile(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
			return err
		}
	}
	snapshots := filepath.Join(from, "snapshots")
	return filepath.WalkDir(snapshots, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile, or there are none
		}
		if err != nil || entry.IsDir() {
			return err
		}
		return copyFile(path, filepath.Join(to, "snapshots", strings.TrimPrefix(path, snapshots)))
	})
}

// copyFile copies a file, with the folder that it is in, unless it is not there, or not any
// more.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}
