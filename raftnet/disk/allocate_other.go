//go:build !linux

package disk

import "os"

// allocate makes f size bytes long, with room on the disk for all of them.
func allocate(f *os.File, size int64) error { return fill(f, size) }
