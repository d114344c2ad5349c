package disk

import (
	"errors"
	"fmt"
	"time"
)

// wayOut is what can be done about a directory that has lost something.
const wayOut = "put back what the directory had when its node stopped (this version cannot replace a node for good)"

// CorruptError says that a file does not have what was written to it. Nothing of
// what could not be verified is used.
type CorruptError struct {
	// File is the path of the file.
	File string
	// Place is where in it: a page and its offset, or a log index.
	Place string
	// Index is the log index if the place is an entry of the log, else 0.
	Index uint64
	// Problem is what is wrong there.
	Problem string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("%s is damaged at %s: %s: %s", e.File, e.Place, e.Problem, wayOut)
}

// StorageError is the first failure of a store. From then on every write of all
// stores of the node fails with it.
type StorageError struct {
	// Op is what was being done.
	Op string
	// Dir is the node's data directory.
	Dir string
	// Err is what happened.
	Err error
}

func (e *StorageError) Error() string {
	return fmt.Sprintf("the storage in %s has failed (%s), and this node stops: %v", e.Dir, e.Op, e.Err)
}

// Unwrap returns Err.
func (e *StorageError) Unwrap() error { return e.Err }

// FullError refuses what would grow, before anything of it is written. It ends by
// itself when there is space.
type FullError struct {
	Dir string
	// Free is how many bytes are free, Reserve how many have to be for the node to go on.
	Free, Reserve uint64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("the disk of %s is full: %d bytes are free, and it takes %d for this node to go on, which it then does by itself: free some space", e.Dir, e.Free, e.Reserve)
}

// GapError says that log and snapshots do not join: a state cannot be made of them
// that has everything which this node has acknowledged.
type GapError struct {
	Dir string
	// From and To are the first and the last index of what is missing.
	From, To uint64
	// Snapshot is the index of the newest usable snapshot, 0 if there is none.
	Snapshot uint64
}

func (e *GapError) Error() string {
	return fmt.Sprintf("in %s the log entries %d to %d are in no usable snapshot (the newest has everything up to %d) and not in the log: %s", e.Dir, e.From, e.To, e.Snapshot, wayOut)
}

// HangError is why a node ends when its disk hangs.
type HangError struct {
	// Op is what the store was doing.
	Op string
	// Busy is how long store calls took of the last Of.
	Busy, Of time.Duration
	// Role is what the node was.
	Role Role
}

// Role is what a node is in its cluster, as far as a hanging disk is concerned.
type Role string

// The roles.
const (
	RoleLeader   Role = "leader"
	RoleFollower Role = "follower"
)

func (e *HangError) Error() string {
	return fmt.Sprintf("the disk hangs (%s), for %v of the last %v: this node, a %s, ends so that others can go on", e.Op, e.Busy, e.Of, e.Role)
}

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("the storage is closed")

// errNotFound is what raft knows an absent key by: it compares the text.
var errNotFound = errors.New("not found")
