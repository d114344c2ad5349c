package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// member is one node of a cluster, over all its runs.
type member struct {
	cluster  *Cluster
	index    int
	id       string
	api      string // where it listens for clients
	dir, log string
	args     []string
	mounted  bool

	// clock and disk are what it was told last. They belong to the goroutine of the
	// target's methods.
	clock nemesis.ClockState
	disk  nemesis.DiskState
	// ailed says that the disk was such as ends a node, which may be about to end of it.
	ailed bool

	mu   sync.Mutex
	last *process // nil before the first start
}

// running returns the process if there is one that has not ended.
func (m *member) running() *process {
	m.mu.Lock()
	p := m.last
	m.mu.Unlock()
	if p == nil {
		return nil
	}
	select {
	case <-p.exited:
		return nil
	default:
		return p
	}
}

// endTimeout is how long a node that was asked to end may take until it is killed.
const endTimeout = 15 * time.Second

// ailTime is how long a node may go on whose disk has just ended it: it has last words.
const ailTime = time.Second

// start starts the node if it does not run. One that is about to end is waited for.
func (m *member) start() error {
	if p := m.running(); p != nil {
		if goesOn, err := m.awaitEnd(p); goesOn || err != nil {
			return err
		}
	}
	m.ailed = false
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own
	_, _ = fmt.Fprintf(log, "---- %s is started, %v into the run\n", m.id, m.cluster.cfg.Now().Round(time.Millisecond))
	p, err := launch(m.cluster.cfg.Binary, m.args, log, m.cluster.cfg.Program, func(e control.Event) { m.cluster.tell(m, e.What, e.Detail) })
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.last = p
	m.mu.Unlock()
	m.cluster.tell(m, "started", "")
	go m.watch(p)
	if m.clock == (nemesis.ClockState{}) && m.disk == nemesis.DiskHealthy || p.commands == nil {
		return nil
	}
	return p.obey(control.Command{Clock: &m.clock, Disk: &m.disk})
}

// awaitEnd waits for the end of a process that was asked to end, or may be about to. It
// reports whether it goes on instead.
func (m *member) awaitEnd(p *process) (goesOn bool, err error) {
	wait := time.Duration(0)
	switch {
	case p.ending:
		wait = endTimeout
	case m.ailed && !p.stopped:
		wait = ailTime
	}
	m.ailed = false
	select {
	case <-p.exited:
		return false, nil
	case <-time.After(wait):
	}
	if !p.ending {
		return true, nil
	}
	return false, p.kill()
}

// watch waits for the end of a process. Whoever waits for p.exited waits for watch.
func (m *member) watch(p *process) {
	_ = p.cmd.Wait() // how it ended is in the process's state
	m.cluster.network.down(m.index)
	switch fate := p.lastHeard(); {
	case p.wasKilled():
	case fate != "":
		m.cluster.tell(m, control.Killed, fate)
	default:
		m.cluster.tell(m, "exited", fmt.Sprintf("exit code %d: %s", p.cmd.ProcessState.ExitCode(), lastLines(m.log)))
	}
	close(p.exited)
}

const (
	lastWords     = 3 // lines
	lastWordBytes = 2000
)

// lastLines returns the end of a log.
func lastLines(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	size, err := f.Seek(0, 2)
	if err != nil {
		return err.Error()
	}
	end := make([]byte, min(size, lastWordBytes))
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(end)), "\n")
	return strings.Join(lines[max(0, len(lines)-lastWords):], "\n")
}

func (m *member) kill() error {
	p := m.running()
	if p == nil {
		return nil
	}
	if err := p.kill(); err != nil {
		return err
	}
	m.cluster.tell(m, "killed", "")
	return nil
}

func (m *member) terminate() error {
	p := m.running()
	if p == nil {
		return nil
	}
	p.ending = true
	if err := terminate(p.cmd.Process); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

func (m *member) setClock(state nemesis.ClockState) error {
	if m.cluster.cfg.Program != Chaosnode {
		return errors.New("the clock of a real node is the machine's: run chaosnode")
	}
	m.clock = nemesis.ClockState{Rate: state.Rate} // a jump is made once
	if p := m.running(); p != nil {
		return p.obey(control.Command{Clock: &state})
	}
	return nil
}

func (m *member) setDisk(state nemesis.DiskState) error {
	switch {
	case m.cluster.cfg.Program == Chaosnode:
		m.ailed = m.ailed || slices.Contains([]nemesis.DiskState{nemesis.DiskFailing, nemesis.DiskReadOnly, nemesis.DiskHanging}, m.disk)
		m.disk = state
		if p := m.running(); p != nil {
			return p.obey(control.Command{Disk: &state})
		}
		return nil
	case state == nemesis.DiskHealthy && !m.mounted:
		return nil
	case m.mounted && (state == nemesis.DiskHealthy || state == nemesis.DiskFull):
		return m.fill(state)
	default:
		return fmt.Errorf("the disk of a real node cannot be made %s here: run chaosnode", state)
	}
}

// fill makes the disk that the node has for itself full, or not.
func (m *member) fill(state nemesis.DiskState) error {
	filler := filepath.Join(m.dir, "filler")
	if state == nemesis.DiskHealthy {
		if err := os.Remove(filler); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	f, err := os.Create(filler)
	if err != nil {
		return err
	}
	defer f.Close()
	for zeros := make([]byte, 1<<20); ; {
		if _, err := f.Write(zeros); err != nil {
			if noSpace(err) {
				return nil
			}
			return err
		}
	}
}

// close ends the node for good.
func (m *member) close() error {
	var faults []error
	if p := m.running(); p != nil {
		faults = append(faults, p.kill())
	}
	m.mu.Lock()
	last := m.last
	m.mu.Unlock()
	if last != nil {
		<-last.exited
		last.joined.Wait()
	}
	if m.mounted {
		faults = append(faults, unmount(m.dir))
	}
	return errors.Join(faults...)
}
