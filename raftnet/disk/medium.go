package disk

// Medium is where a node's log and vote are kept: everything that is written and
// read of them passes it. [Config].Wrap puts another around the real one, to make
// the disk fail, hang or lie.
//
// One Write runs at a time; reads run beside it and each other.
type Medium interface {
	// Write does c as a whole or not at all, whenever the process or the machine
	// stops. When it returns nil, c has been fsynced. After an error it may have
	// been done or not, and nothing more is written.
	Write(c Change) error
	// Read returns a copy of the entry at index, nil if there is none.
	Read(index uint64) ([]byte, error)
	// Close waits for the calls in progress.
	Close() error
}

// Change is one transaction. Deletions come before insertions.
type Change struct {
	// Head is the new head.
	Head []byte
	// Delete is the range of entries to be deleted.
	Delete Range
	// Put are the entries to be written, ascending by index.
	Put []Entry
}

// Range is First to Last, both included; the zero range is empty.
type Range struct{ First, Last uint64 }

// Entry is a log entry as it is stored.
type Entry struct {
	Index uint64
	Value []byte
}
