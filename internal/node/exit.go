package node

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/raftnet/disk"
)

// The exit codes of a node's process beyond those that every program has, so that
// whoever starts it again knows whether that helps.
const (
	// ExitStorage: a write, an fsync or a read has failed. A start verifies everything.
	ExitStorage = 10
	// ExitHung: the disk hung.
	ExitHung = 11
	// ExitDiverged: the state differs from the other nodes', or an entry is not
	// understood or breaks a rule. A start would end the same way.
	ExitDiverged = 12
	// ExitDamaged: the data directory is damaged. A start would end the same way.
	ExitDamaged = 13
)

// ExitCode returns the code with which a process ends because of err; 1 if it has none
// of its own.
func ExitCode(err error) int {
	var (
		storage   *disk.StorageError
		hang      *disk.HangError
		corrupt   *disk.CorruptError
		gap       *disk.GapError
		diverged  *DivergedError
		unknown   *fsm.UnknownEntryError
		malformed *fsm.CorruptEntryError
		broken    *fsm.InvariantError
	)
	switch {
	case errors.As(err, &hang):
		return ExitHung
	case errors.As(err, &storage), errors.Is(err, syscall.ENOSPC): // the latter from the state file
		return ExitStorage
	case errors.As(err, &corrupt), errors.As(err, &gap):
		return ExitDamaged
	case errors.As(err, &diverged), errors.As(err, &unknown), errors.As(err, &malformed), errors.As(err, &broken):
		return ExitDiverged
	default:
		return 1
	}
}

// lastWords is how long an ending process tries to say why: what it writes to may be on
// the disk that hangs.
const lastWords = 500 * time.Millisecond

// exit is [Parts].Exit in production.
func exit(err error) {
	said := make(chan struct{})
	go func() {
		defer close(said)
		_, _ = fmt.Fprintf(os.Stderr, "leasenode: this node ends at once: %v\n", err)
	}()
	select {
	case <-said:
	case <-time.After(lastWords):
	}
	os.Exit(ExitCode(err))
}
