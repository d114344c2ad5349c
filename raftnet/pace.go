package raftnet

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// pacedLog is the log, and how long its latest writes took.
type pacedLog struct {
	raft.LogStore
	mu     sync.Mutex
	recent [128]time.Duration
	next   int
}

// StoreLog implements raft.LogStore.
func (l *pacedLog) StoreLog(log *raft.Log) error { return l.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore.
func (l *pacedLog) StoreLogs(logs []*raft.Log) error {
	began := time.Now()
	err := l.LogStore.StoreLogs(logs)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recent[l.next%len(l.recent)] = time.Since(began)
	l.next++
	return err
}

// IsMonotonic implements raft.MonotonicLogStore.
func (l *pacedLog) IsMonotonic() bool {
	store, ok := l.LogStore.(raft.MonotonicLogStore)
	return ok && store.IsMonotonic()
}

// slow returns how long a slow write takes: the 99th percentile of the latest, 0 before
// there is one.
func (l *pacedLog) slow() time.Duration {
	l.mu.Lock()
	recent := slices.Clone(l.recent[:min(l.next, len(l.recent))])
	l.mu.Unlock()
	if len(recent) == 0 {
		return 0
	}
	slices.Sort(recent)
	return recent[len(recent)*99/100]
}
