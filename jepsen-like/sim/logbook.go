package sim

import (
	"fmt"
	"hash/fnv"
	"sync"

	"github.com/hashicorp/raft"
)

// logbook knows what all nodes have ever written into their logs, and notices if two
// have written different entries under one index and term. That must never be: raft
// takes such logs for the same, for ever, and whether it can be seen in the state, then
// or ever, is luck.
type logbook struct {
	mu      sync.Mutex
	entries map[position]uint64 // to the hash of the content
}

type position struct{ index, term uint64 }

func newLogbook() *logbook { return &logbook{entries: map[position]uint64{}} }

// note takes entries in and returns what is wrong with them, "" if nothing is.
func (b *logbook) note(entries []*raft.Log) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range entries {
		h := fnv.New64a()
		_, _ = h.Write([]byte{byte(e.Type)})
		_, _ = h.Write(e.Data)
		at := position{e.Index, e.Term}
		if known, ok := b.entries[at]; ok && known != h.Sum64() {
			return fmt.Sprintf("entry %d of term %d (%v) is another than elsewhere", e.Index, e.Term, e.Type)
		}
		b.entries[at] = h.Sum64()
	}
	return ""
}
