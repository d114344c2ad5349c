//go:build !linux

package wal

import "os"

// syncData makes durable what was written to f.
func syncData(f *os.File) error { return f.Sync() }
