//go:build !linux && !darwin && !freebsd

package wal

import "os"

// lockExclusive leaves it to the node's own lock on the directory.
func lockExclusive(*os.File) error { return nil }

// lockShared leaves it to the node's own lock on the directory.
func lockShared(*os.File) error { return nil }
