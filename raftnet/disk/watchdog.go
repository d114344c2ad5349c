package disk

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// watchdog ends the process when the disk hangs: a leader whose disk hangs keeps its
// followers quiet, commits nothing, and cannot even hand over.
//
// A wake-up is busy if a call is in progress that was so at the wake-up before. What
// ends sooner never counts, however many such calls there are: a disk that is kept
// busy is none that hangs.
//
// Calls of the log and the vote are watched, not snapshots: those take long on a good
// disk, and where a disk hangs the log does too.
type watchdog struct {
	leads   func() bool
	end     func(error)
	logger  hclog.Logger
	metrics *metrics

	mu    sync.Mutex
	calls map[*call]struct{}
	// slowest are the longest calls that ended in this period and in the one before.
	slowest [2]time.Duration
	lastOp  string
	wakes   int
	meter   meter
}

// call is a call in progress.
type call struct {
	op    string
	began time.Time
	// seen is set once a wake-up found it.
	seen bool
}

const (
	// slowestWakes is the length of the period of which the slowest call is told.
	slowestWakes = 300
	// lastWord bounds how long the end waits for the log line that says why.
	lastWord = 200 * time.Millisecond
)

func newWatchdog(cfg Config, m *metrics) *watchdog {
	return &watchdog{leads: cfg.Leads, end: cfg.End, logger: cfg.Logger, metrics: m, calls: map[*call]struct{}{}}
}

// begin notes a call; the returned function notes its end.
func (w *watchdog) begin(op string) (end func()) {
	c := &call{op: op, began: time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[c] = struct{}{}
	return func() {
		took := time.Since(c.began)
		w.metrics.calls.WithLabelValues(op).Observe(took.Seconds())
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.calls, c)
		w.slowest[0] = max(w.slowest[0], took)
	}
}

// slowestCall returns how long the slowest call of the last minute or less took, those
// in progress included.
func (w *watchdog) slowestCall() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	longest := max(w.slowest[0], w.slowest[1])
	for c := range w.calls {
		longest = max(longest, time.Since(c.began))
	}
	return longest
}

// watchLoop wakes up, by a ticker if wake is nil, until stop is closed or the disk
// hangs.
func (w *watchdog) watchLoop(wake <-chan time.Time, stop <-chan struct{}) {
	if wake == nil {
		ticker := time.NewTicker(wakeInterval)
		defer ticker.Stop()
		wake = ticker.C
	}
	for {
		select {
		case <-stop:
			return
		case <-wake:
		}
		if hang := w.look(); hang != nil {
			w.fire(hang)
			return
		}
	}
}

// look is one wake-up.
func (w *watchdog) look() *HangError {
	role := RoleFollower
	if w.leads() {
		role = RoleLeader
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := false
	for c := range w.calls {
		if c.seen {
			busy, w.lastOp = true, c.op
		}
		c.seen = true
	}
	if w.wakes++; w.wakes%slowestWakes == 0 {
		w.slowest[0], w.slowest[1] = 0, w.slowest[0]
	}
	w.meter.wake(busy)
	return w.meter.hangs(role, w.lastOp)
}

// fire ends the process. The metric comes first: it is in memory. The log line may go
// to a file on the very disk that hangs, and the logger's lock may be held by one who
// waits for it, so it is written beside, and is waited for only briefly.
func (w *watchdog) fire(hang *HangError) {
	w.metrics.hangs.Inc()
	said := make(chan struct{})
	go func() {
		defer close(said)
		w.logger.Error("this node ends", "error", hang)
	}()
	timer := time.NewTimer(lastWord)
	defer timer.Stop()
	select {
	case <-said:
	case <-timer.C:
	}
	w.end(hang)
	<-said
}
