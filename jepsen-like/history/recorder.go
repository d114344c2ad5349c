package history

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/leasenode/leasenode/lease"
)

// Recorder takes a run down while it happens: in memory, and line by line into a
// file from which [Read] makes the same [Run]. All methods are safe for concurrent
// use; what is added is in the run and in the file when the method returns. Make one
// with [NewRecorder].
type Recorder struct {
	mu     sync.Mutex
	run    Run
	lastID int
	out    io.Writer
	err    error // of the first line that could not be written
}

// NewRecorder returns a Recorder of an empty run that writes each record to out as
// one line of JSON, in one call of Write. A nil out keeps the run in memory only.
func NewRecorder(out io.Writer) *Recorder {
	if out == nil {
		out = io.Discard
	}
	return &Recorder{out: out}
}

// line is one line of the file. Exactly one field is set. Stored and Records replace
// what was there before, all others add to it.
type line struct {
	Info     *Info        `json:"info,omitempty"`
	Op       *Op          `json:"op,omitempty"`
	Belief   *Belief      `json:"belief,omitempty"`
	Write    *Write       `json:"write,omitempty"`
	Fault    *Fault       `json:"fault,omitempty"`
	Event    *NodeEvent   `json:"event,omitempty"`
	Stored   []entryJSON  `json:"stored,omitzero"`
	Records  []recordJSON `json:"records,omitzero"`
	Digest   *Digest      `json:"digest,omitempty"`
	Recovery *Recovery    `json:"recovery,omitempty"`
	Watched  *Watched     `json:"watched,omitempty"`
}

// add puts l into the run and into the file. The run has it also if writing fails.
func (r *Recorder) add(l line) {
	data, err := json.Marshal(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		err = r.run.take(l)
	}
	if err == nil {
		_, err = r.out.Write(append(data, '\n'))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("history: writing a record: %w", err)
	}
}

// take adds what a line has to the run.
func (run *Run) take(l line) error {
	switch {
	case l.Info != nil:
		run.Info = *l.Info
	case l.Op != nil:
		run.Ops = append(run.Ops, *l.Op)
	case l.Belief != nil:
		run.Beliefs = append(run.Beliefs, *l.Belief)
	case l.Write != nil:
		run.Writes = append(run.Writes, *l.Write)
	case l.Fault != nil:
		run.Faults = append(run.Faults, *l.Fault)
	case l.Event != nil:
		run.Events = append(run.Events, *l.Event)
	case l.Stored != nil:
		stored, err := entriesFromJSON(l.Stored)
		run.Stored = stored
		return err
	case l.Records != nil:
		run.Records = recordsFromJSON(l.Records)
	case l.Digest != nil:
		run.Digests = append(run.Digests, *l.Digest)
	case l.Recovery != nil:
		run.Recoveries = append(run.Recoveries, *l.Recovery)
	case l.Watched != nil:
		run.Watched = append(run.Watched, *l.Watched)
	default:
		return fmt.Errorf("a line with nothing that is known")
	}
	return nil
}

// SetInfo says what is run, in place of what was said before.
func (r *Recorder) SetInfo(info Info) { r.add(line{Info: &info}) }

// NextID returns an ID that no operation has: 1, 2, 3, ...
func (r *Recorder) NextID() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastID++
	return r.lastID
}

// AddOp adds an operation that has ended, or was given up.
func (r *Recorder) AddOp(op Op) { r.add(line{Op: &op}) }

// AddBelief adds a belief of a holder.
func (r *Recorder) AddBelief(b Belief) { r.add(line{Belief: &b}) }

// AddWrite adds an attempt to write to the resource.
func (r *Recorder) AddWrite(w Write) { r.add(line{Write: &w}) }

// AddFault adds a fault, once it is over.
func (r *Recorder) AddFault(f Fault) { r.add(line{Fault: &f}) }

// AddEvent adds an event.
func (r *Recorder) AddEvent(e NodeEvent) { r.add(line{Event: &e}) }

// SetStored sets the cluster's own history, in place of what was set before.
func (r *Recorder) SetStored(entries []lease.Entry) { r.add(line{Stored: entriesToJSON(entries)}) }

// SetRecords sets the records of the end, in place of what was set before.
func (r *Recorder) SetRecords(records []lease.Record) { r.add(line{Records: recordsToJSON(records)}) }

// AddDigests adds digests.
func (r *Recorder) AddDigests(digests ...Digest) {
	for _, d := range digests {
		r.add(line{Digest: &d})
	}
}

// AddRecovery adds what became of one node after a phase.
func (r *Recorder) AddRecovery(recovery Recovery) { r.add(line{Recovery: &recovery}) }

// AddWatched adds what a watcher was told. Those of one watcher have to be added in
// order.
func (r *Recorder) AddWatched(w Watched) { r.add(line{Watched: &w}) }

// Run returns the run so far. Later additions do not change it.
func (r *Recorder) Run() Run {
	r.mu.Lock()
	defer r.mu.Unlock()
	run := r.run
	run.Info.Nodes = slices.Clone(run.Info.Nodes)
	run.Info.Options = maps.Clone(run.Info.Options)
	run.Ops = slices.Clone(run.Ops)
	run.Beliefs = slices.Clone(run.Beliefs)
	run.Writes = slices.Clone(run.Writes)
	run.Faults = slices.Clone(run.Faults)
	run.Events = slices.Clone(run.Events)
	run.Stored = slices.Clone(run.Stored)
	run.Records = slices.Clone(run.Records)
	run.Digests = slices.Clone(run.Digests)
	run.Recoveries = slices.Clone(run.Recoveries)
	run.Watched = slices.Clone(run.Watched)
	return run
}

// Err returns why the file is not complete, or nil. The run in memory is.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}
