package faulty

import (
	"math/rand/v2"
	"os"

	"github.com/hashicorp/raft"

	"github.com/leasenode/leasenode/jepsen-like/chaosnode/control"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// moment is where in the writing of a snapshot a node may die.
type moment int

const (
	halfWritten moment = iota
	written            // and not finished: it still has its temporary name
	finished           // and raft does not know: the log is not shortened, nothing is restored
	moments
)

func (m moment) String() string {
	return [moments]string{"half written", "written and not finished", "finished and not yet relied on"}[m]
}

// snapshots is a node's snapshot store on a disk with faults.
type snapshots struct {
	raft.SnapshotStore
	logs   raft.LogStore
	faults *Disk
}

func (s snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, trans raft.Transport) (raft.SnapshotSink, error) {
	if state, _ := s.faults.look(); state == nemesis.DiskReadOnly {
		return nil, errReadOnly
	}
	inner, err := s.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	k := &sink{SnapshotSink: inner, faults: s.faults, what: control.SnapshotReceived, fatal: rand.N(moments)}
	if s.has(index, term) {
		k.what = control.SnapshotTaken
	}
	return k, nil
}

// has reports whether the log has the last entry of a snapshot, as it does if the node
// takes it: one that is sent has what this log has not.
func (s snapshots) has(index, term uint64) bool {
	var entry raft.Log
	return s.logs.GetLog(index, &entry) == nil && entry.Term == term
}

// sink is a snapshot that is being written. It is used by one goroutine.
type sink struct {
	raft.SnapshotSink
	faults *Disk
	what   string
	fatal  moment
	closed bool
}

func (k *sink) Write(b []byte) (int, error) {
	if k.fatal != halfWritten || !k.faults.deadly() {
		return k.SnapshotSink.Write(b)
	}
	n, err := k.SnapshotSink.Write(b[:len(b)/2])
	k.die(halfWritten)
	if err != nil {
		return n, err
	}
	rest, err := k.SnapshotSink.Write(b[n:]) // it was told otherwise just now
	return n + rest, err
}

func (k *sink) Close() error {
	k.die(written)
	err := k.SnapshotSink.Close()
	if err != nil || k.closed {
		return err
	}
	k.closed = true
	k.faults.tell(control.Event{What: k.what})
	k.die(finished)
	return nil
}

func (k *sink) die(at moment) {
	if k.fatal == at {
		k.faults.dieIfDeadly(control.Event{What: control.Killed, Detail: "at a " + k.what + ", " + at.String()})
	}
}

func (d *Disk) deadly() bool {
	state, _ := d.look()
	return state == nemesis.DiskDeadly
}

// dieIfDeadly ends this process if the disk is deadly, and says so before. Whoever has
// set another state then, and was told that it is in effect, can rely on it.
func (d *Disk) dieIfDeadly(last control.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != nemesis.DiskDeadly {
		return
	}
	d.tell(last)
	if d.Die != nil {
		d.Die()
		return
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil && self.Kill() == nil {
		select {} // until it is done
	}
	panic("this process cannot kill itself")
}

func (d *Disk) tell(e control.Event) {
	if d.Tell != nil {
		d.Tell(e)
	}
}
