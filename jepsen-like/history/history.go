// Package history is the record of a run of chaos or of simulation: what clients
// asked and were told, what holders believed, what the fenced resource took, what was
// done to the cluster, and what the cluster had in the end. The checkers judge a
// [Run] and nothing else, so that a run can be judged again from its file.
//
// All moments are on the harness's clock: the time since the run began, on one
// monotonic clock of one machine.
package history

import (
	"time"

	"github.com/leasenode/leasenode/lease"
)

// Run is one whole run.
type Run struct {
	// Info says what was run; for people and for the report, no check needs it.
	Info    Info
	Ops     []Op
	Beliefs []Belief
	Writes  []Write
	Faults  []Fault
	Events  []NodeEvent
	// Stored is the cluster's own history of each key, as read in the end, in log order.
	Stored []lease.Entry
	// Records are all records, as read in the end.
	Records []lease.Record
	// Digests are the digests that nodes told, over the whole run.
	Digests []Digest
	// Recoveries tell how soon the cluster served after faults had healed.
	Recoveries []Recovery
	// Watched is what watchers were told. Those of one watcher are in order.
	Watched []Watched
}

// Info says what was run.
type Info struct {
	// Name is what was run, in a few words: "chaos", "simulation", the user's program.
	Name string `json:"name,omitempty"`
	// Seed makes the same run again.
	Seed int64 `json:"seed,omitempty"`
	// Nodes are the names of all nodes.
	Nodes []string `json:"nodes,omitempty"`
	// Began is the time of day at which the harness's clock was 0.
	Began time.Time `json:"began,omitzero"`
	// Length is how long it ran, on the harness's clock; 0 if it is not known.
	Length time.Duration `json:"length,omitempty"`
	// Options are what it was run with, by name.
	Options map[string]string `json:"options,omitempty"`
}

// Outcome is how an operation ended for its client.
type Outcome string

// The outcomes. The first three are answers of the store; an operation without one of
// them may or may not have been done, unless it is Unavailable or Invalid.
const (
	OK          Outcome = "ok"
	Held        Outcome = "held"
	Lost        Outcome = "lost"
	Unavailable Outcome = "unavailable" // certainly not done
	Unknown     Outcome = "unknown"     // may have been done, at any later moment
	Invalid     Outcome = "invalid"     // refused before the log
	Exhausted   Outcome = "exhausted"
)

// Kind is what an operation asks for.
type Kind string

// The kinds. GetStale is a read that need not be linearizable.
const (
	Acquire  Kind = "acquire"
	Renew    Kind = "renew"
	Release  Kind = "release"
	Forget   Kind = "forget"
	Get      Kind = "get"
	GetStale Kind = "get-stale"
)

// Op is one operation of one client, from the call to the answer. Of a key that is
// judged, every mutation that anybody asks for has to be recorded.
type Op struct {
	// ID is unique within the run.
	ID int `json:"id"`
	// Client asked; one client has one operation out at a time.
	Client string `json:"client"`
	// Node is the endpoint that was asked, "" if the client chose.
	Node string `json:"node,omitempty"`

	Kind      Kind          `json:"kind"`
	Key       string        `json:"key"`
	Owner     string        `json:"owner,omitempty"`
	Epoch     uint64        `json:"epoch,omitempty"` // that a renew, release or forget speaks for
	TTL       time.Duration `json:"ttl,omitempty"`
	RequestID string        `json:"request_id,omitempty"`
	// Tries is how often the client sent it; 0 if the client sends again by itself, and
	// nobody counted. Every try but the one that was answered may have been done too, at
	// any moment after the call.
	Tries int `json:"tries,omitempty"`

	// Call is when it was asked, Return when the answer was there. Without an answer
	// Return is when the client gave up.
	Call   time.Duration `json:"call"`
	Return time.Duration `json:"return"`

	Outcome Outcome `json:"outcome"`
	// Record is of the answer or of the refusal; zero if there was none.
	Record lease.Record `json:"record"`
	// Now is the cluster clock of an answer, in whole milliseconds as the wire has it; 0
	// if it was not told (refusals do not tell it).
	Now lease.Instant `json:"now,omitempty"`
	// Remaining is of the answer or of the refusal, as the wire has it.
	Remaining time.Duration `json:"remaining,omitempty"`
	Changed   bool          `json:"changed,omitempty"`
	Error     string        `json:"error,omitempty"`
}

// Belief is a time for all of which a holder was certain that it held: from a moment
// at which it said so, to the deadline that it then had, or to the moment before which
// it gave the lease up or said that it was fenced. Beliefs of one grant may overlap.
type Belief struct {
	Holder string        `json:"holder"`
	Key    string        `json:"key"`
	Epoch  uint64        `json:"epoch"`
	From   time.Duration `json:"from"`
	Until  time.Duration `json:"until"`
}

// Write is one attempt to write to the fenced resource of a key.
type Write struct {
	// Seq is the order in which the resource decided about the attempts of one key.
	Seq      int           `json:"seq"`
	Holder   string        `json:"holder"`
	Key      string        `json:"key"`
	Token    uint64        `json:"token"`
	At       time.Duration `json:"at"`
	Accepted bool          `json:"accepted"`
}

// Fault is something that was done to the cluster, for a time.
type Fault struct {
	Kind    string        `json:"kind"`
	Targets []string      `json:"targets,omitempty"`
	Detail  string        `json:"detail,omitempty"`
	From    time.Duration `json:"from"`
	Until   time.Duration `json:"until"`
}

// NodeEvent is something that happened to one node or holder process.
type NodeEvent struct {
	Node string        `json:"node"`
	What string        `json:"what"` // started, killed, stopped, continued, exited, snapshot taken, snapshot received
	At   time.Duration `json:"at"`
	// Detail is, for exited, the exit code and the last words, and for killed in which
	// moment, if the node itself had to choose it.
	Detail string `json:"detail,omitempty"`
}

// Digest is what one node told of its state after one log entry.
type Digest struct {
	Node  string `json:"node"`
	Index uint64 `json:"index"`
	Sum   string `json:"sum"`
}

// Recovery is how soon a node served a linearizable read and a write after the last
// fault of a phase had healed. Served is negative if it did not within the bound.
type Recovery struct {
	Node   string        `json:"node"`
	Healed time.Duration `json:"healed"`
	Served time.Duration `json:"served"`
}
