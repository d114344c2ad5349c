package lease

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// Watcher is a store whose changes can be followed. Its methods are safe for
// concurrent use.
type Watcher interface {
	// Watch returns what happens to the keys of req, in log order, without a gap and
	// without a repeat, until the context ends or the watch cannot go on. The first
	// update comes as soon as the watch has begun, and has its position unless a listing
	// begins; from then on one comes at least every five seconds while the store is up,
	// if only to tell the position.
	//
	// The last element has an error and nothing else:
	//
	//   - [*InvalidError]: the request is outside a limit, or its position is of another
	//     cluster or of the future.
	//   - [*CompactedError]: what comes next is kept no longer. A watch with Sync begins
	//     with a new listing instead.
	//   - [*ExhaustedError]: a limit of the store is reached.
	//   - the context's error, with its cause: it has ended. If nobody served the watch at
	//     that moment, it is [ErrUnavailable] too.
	//
	// Whoever stops taking elements ends the watch. The sequence can be gone through once.
	Watch(ctx context.Context, req WatchRequest) iter.Seq2[WatchUpdate, error]
}

// WatchRequest says what to watch, and from where on.
type WatchRequest struct {
	// Key is the one key to watch; if it is empty, Prefix says which.
	Key string
	// Prefix is compared by bytes: "a" is a prefix of "a", "a/" and "ab". Empty for all
	// keys.
	Prefix string
	// Renewals has renewals reported too. There are many.
	Renewals bool
	// After is where to go on: everything up to it has been seen. Zero to begin with now.
	After Position
	// Sync has the watch begin with a listing of what there is, and with another one
	// whenever what comes next is kept no longer. With After the first is left out as
	// long as what comes after it is still kept.
	Sync bool
	// Selection says which records the listing has.
	Selection Selection
}

// Validate checks the limits that r can be held to by itself, and returns an
// [*InvalidError] or nil.
func (r WatchRequest) Validate() error {
	if r.Key == "" {
		return ValidatePrefix(r.Prefix)
	}
	if r.Prefix != "" {
		return &InvalidError{Field: "prefix", Problem: "is given with a key", Limit: "empty, or given alone"}
	}
	return ValidateKey(r.Key)
}

// Position is a place in the log of one cluster: everything up to Index has been
// seen. It is good for any node of that cluster and for any watch. The zero value is
// none.
type Position struct {
	ClusterID string
	Index     uint64
}

// String returns p as [ParsePosition] takes it: the cluster's id, a colon, the index.
func (p Position) String() string { return p.ClusterID + ":" + strconv.FormatUint(p.Index, 10) }

// ParsePosition is the inverse of [Position.String]; what is no position is an
// [*InvalidError].
func ParsePosition(s string) (Position, error) {
	at := strings.LastIndexByte(s, ':')
	if at > 0 {
		if index, err := strconv.ParseUint(s[at+1:], 10, 64); err == nil {
			return Position{ClusterID: s[:at], Index: index}, nil
		}
	}
	return Position{}, &InvalidError{Field: "after", Problem: fmt.Sprintf("is %.80q", s), Limit: "a position that a watch has given: the cluster's id, a colon, an index"}
}

// WatchUpdate is one step of a watch.
type WatchUpdate struct {
	// Reset says that a listing begins: what the watch has told before is void.
	Reset bool
	// Records are of a listing. A key may come more than once in it, and the last counts.
	Records []Record
	// Synced says that the listing is complete: it is the state at Position, with the
	// clock at Now.
	Synced bool
	// Events are what happened, in log order, those of one log entry together in one
	// update unless they are very many.
	Events []Event
	// Position is where a later watch can go on after this update. It is zero within a
	// listing, and while more events of the same log entry are to come.
	Position Position
	// Now is the cluster clock as of Position: what is left of a lease that the update
	// shows is its LeaseUntil less Now, and less by the time since, which nobody who
	// watches can know exactly. It is good for showing, never as a right to act.
	Now Instant
}

// EventKind is what happened to a lease.
type EventKind uint8

// The kinds.
const (
	// Acquired: the key was granted, at a new epoch.
	Acquired EventKind = 1
	// Renewed: its lease was made longer.
	Renewed EventKind = 2
	// Released: its owner gave it back.
	Released EventKind = 3
	// Forgotten: what was written up to its epoch counts as erased.
	Forgotten EventKind = 4
	// Expired: its end has passed on the cluster clock. A lease that was released does
	// not expire.
	Expired EventKind = 5
)

var eventKinds = [...]string{Acquired: "acquired", Renewed: "renewed", Released: "released", Forgotten: "forgotten", Expired: "expired"}

// String returns the word for k on the wire and on the command line.
func (k EventKind) String() string {
	if k < Acquired || k > Expired {
		return fmt.Sprintf("event(%d)", uint8(k))
	}
	return eventKinds[k]
}

// ParseEventKind is the inverse of [EventKind.String]; ok is false for another word.
func ParseEventKind(word string) (k EventKind, ok bool) {
	for k := Acquired; k <= Expired; k++ {
		if eventKinds[k] == word {
			return k, true
		}
	}
	return 0, false
}

// EventOf returns the kind of event that a granted operation is.
func EventOf(op Op) EventKind {
	switch op {
	case OpAcquire:
		return Acquired
	case OpRenew:
		return Renewed
	case OpRelease:
		return Released
	default:
		return Forgotten
	}
}

// Event is something that happened to a key.
type Event struct {
	Kind EventKind
	// Record is the key's record after it. Of an expired lease it is as before: that
	// lease is over since its LeaseUntil.
	Record Record
	// Index is the log entry in which it happened, or was found: leases that have ended
	// are found by the first entry with a later clock, and come, in the order of their
	// end and key, before what the entry itself did.
	Index uint64
	// At is the cluster clock of that entry: not a time of day. Of an expired lease it is
	// its LeaseUntil or later.
	At Instant
}

// CompactedError says that a watch cannot begin after a position: something after it
// is kept no longer. List what there is and watch from there (Sync does both), or ask
// another node, which may have kept more.
type CompactedError struct {
	// After is the position that was asked for.
	After Position
	// Oldest is the oldest that the asked node has everything after.
	Oldest Position
}

func (e *CompactedError) Error() string {
	return fmt.Sprintf("what came after position %s is kept no longer (the oldest to go on from is %s): list what there is and watch from there", e.After, e.Oldest)
}

// Code returns [CodeCompacted].
func (e *CompactedError) Code() Code { return CodeCompacted }

// TooSlowError ends a watch whose reader did not keep up. Go on after Last.
type TooSlowError struct {
	// Last is the position of the last update that was certainly taken; its Index is 0 if
	// none was. What has come after it counts all the same.
	Last Position
}

func (e *TooSlowError) Error() string {
	return fmt.Sprintf("the watch was cut off because its messages were not taken in time: read faster, and go on after position %s", e.Last)
}

// Code returns [CodeWatchTooSlow].
func (e *TooSlowError) Code() Code { return CodeWatchTooSlow }
