package disk

import "sync"

// latch remembers the first failure of any store. It is safe for concurrent use.
type latch struct {
	dir       string
	onFailure func(error)
	metrics   *metrics

	mu  sync.Mutex
	err *StorageError
	// told is closed when onFailure has returned.
	told chan struct{}
}

func newLatch(cfg Config, m *metrics) *latch {
	return &latch{dir: cfg.Dir, onFailure: cfg.OnFailure, metrics: m, told: make(chan struct{})}
}

// failure returns the first failure, nil if there was none.
func (l *latch) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		return nil
	}
	return l.err
}

// trip closes the latch, if it is not yet, tells the owner, and returns the first
// failure. No failure is returned to anybody before the owner has been told.
func (l *latch) trip(op string, cause error) error {
	l.mu.Lock()
	first := l.err == nil
	if first {
		l.err = &StorageError{Op: op, Dir: l.dir, Err: cause}
	}
	err := l.err
	l.mu.Unlock()
	if first {
		l.metrics.failures.Inc()
		l.onFailure(err)
		close(l.told)
	}
	<-l.told
	return err
}
