package fsm

import (
	"errors"
	"fmt"
)

// ErrClosed answers every call after [FSM.Close].
var ErrClosed = errors.New("the state machine is closed")

// TermError refuses a batch whose stamp was taken in another term than the log
// gives the entry: its reading means nothing. The batch was certainly not done.
type TermError struct {
	Entry uint64 // the term that the stamp names
	Log   uint64 // the term of the log entry
}

func (e *TermError) Error() string {
	return fmt.Sprintf("the entry was stamped in term %d and logged in term %d: not applied", e.Entry, e.Log)
}

// UnknownEntryError says that a log entry is of a kind that this program does not
// know, most likely written by a newer one.
type UnknownEntryError struct {
	What   string // "version", "kind" or "operation"
	Number uint64
}

func (e *UnknownEntryError) Error() string {
	return fmt.Sprintf("the entry has %s %d, which this program does not know (it understands entries up to version %d): run a newer one", e.What, e.Number, EntryVersion)
}

// CorruptEntryError says that a log entry is not what any version has written.
type CorruptEntryError struct {
	Offset  int // in bytes from the entry's start
	Problem string
}

func (e *CorruptEntryError) Error() string {
	return fmt.Sprintf("the entry is corrupt at byte %d: %s", e.Offset, e.Problem)
}

// CorruptStateError says that the local state file does not hold what was written
// to it.
type CorruptStateError struct {
	Where   string // "meta", or the key of a record in quotes
	Offset  int    // in bytes from the value's start
	Problem string
}

func (e *CorruptStateError) Error() string {
	return fmt.Sprintf("the stored state is corrupt: %s at byte %d: %s", e.Where, e.Offset, e.Problem)
}

// InvariantError says that an entry would have broken a rule that nothing may
// break. Nothing of the entry was written.
type InvariantError struct {
	Key     string // empty if it is not about one key
	Problem string
}

func (e *InvariantError) Error() string {
	if e.Key == "" {
		return "refused to break an invariant: " + e.Problem
	}
	return fmt.Sprintf("refused to break an invariant of key %q: %s", e.Key, e.Problem)
}

// UnknownSnapshotError says that a snapshot is of a format that this program does
// not know, most likely written by a newer one.
type UnknownSnapshotError struct{ Version uint64 }

func (e *UnknownSnapshotError) Error() string {
	return fmt.Sprintf("the snapshot has format version %d, and this program understands up to %d: run a newer one", e.Version, snapshotVersion)
}

// CorruptSnapshotError says that a snapshot is damaged, cut short or not one.
type CorruptSnapshotError struct {
	Offset  int64 // in bytes from the snapshot's start
	Problem string
}

func (e *CorruptSnapshotError) Error() string {
	return fmt.Sprintf("the snapshot is corrupt at byte %d: %s", e.Offset, e.Problem)
}
