package model

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
)

// input is one operation as the model sees it. All times are whole milliseconds.
type input struct {
	op history.Op
	// id is the request id; of a client that makes its own ids, one that stands for them.
	id string
	// ownID says that id stands for ids that nobody but the client knows.
	ownID bool

	ttl       int64
	now       int64
	until     int64
	remaining int64

	// rank is, of a mutation whose instant is known, how many of those were decided at
	// an earlier instant.
	rank int
	part part
}

// part is what an operation is to the search.
type part uint8

const (
	answered part = iota // has an answer or a refusal, which has to be right
	possible             // may take effect, once, or not
	ending               // comes after all that was answered; no possible one needs to take effect any more
)

func inputOf(op history.Op) *input {
	in := &input{
		op: op, id: op.RequestID,
		ttl: op.TTL.Milliseconds(), now: op.Now.Millis(), until: op.Record.LeaseUntil.Millis(),
		remaining: millisUp(op.Remaining),
	}
	if op.Outcome == history.OK && op.Kind != history.Get {
		in.remaining = op.Remaining.Milliseconds() // rounded down for a holder
	}
	if op.Kind == history.Acquire && op.RequestID == "" && op.Tries != 1 {
		in.id, in.ownID = fmt.Sprintf("\x00own of %d", op.ID), true
	}
	return in
}

func millisUp(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// judged reports whether the answer of op can be held against the rules.
func judged(op history.Op) bool {
	switch op.Outcome {
	case history.OK, history.Held, history.Lost:
		return op.Kind != history.GetStale
	default:
		return false
	}
}

// mayHaveActed returns how many effects op may have had that no answer tells of; a
// negative number is any number.
func mayHaveActed(op history.Op) int {
	switch {
	case op.Kind == history.Get || op.Kind == history.GetStale:
		return 0
	case op.Outcome == history.Unavailable || op.Outcome == history.Invalid || op.Outcome == history.Exhausted:
		return 0
	case op.Tries == 0:
		return -1
	case judged(op):
		return op.Tries - 1
	default:
		return op.Tries
	}
}

// instantKnown reports whether op's Now is the instant at which the log decided it.
func instantKnown(op history.Op) bool {
	return op.Outcome == history.OK && (op.Kind == history.Acquire || op.Kind == history.Renew || op.Kind == history.Release || op.Kind == history.Forget)
}

// alive reports whether op shows that its record's lease was not over.
func alive(op history.Op) bool {
	switch {
	case op.Outcome == history.Held:
		return true
	case op.Outcome == history.OK && (op.Kind == history.Acquire || op.Kind == history.Renew || op.Kind == history.Forget):
		return true
	case op.Outcome == history.OK && op.Kind == history.Release:
		return false
	default:
		return op.Remaining > 0
	}
}
