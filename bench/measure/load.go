package measure

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Call makes one request for one of the clients, which are counted from 0. The calls
// of one client never overlap.
type Call func(ctx context.Context, client int) error

// ErrDry is what a [Call] returns when it has nothing left to work on. It ends the
// measurement and is not counted as a failure.
var ErrDry = errors.New("nothing left to work on")

// End says what becomes of the calls that are under way when the time is up.
type End uint8

const (
	// LetFinish waits for them.
	LetFinish End = iota
	// CutOff cancels their context: for calls that wait for each other.
	CutOff
)

// failurePause keeps a system that refuses everything from being asked in a tight loop.
const failurePause = time.Millisecond

// Load is clients that each make a call as soon as their last one has returned.
type Load struct {
	Clients int
	// Warm is how long the clients are at work before the window opens, Window how long
	// it is open unless a call returns [ErrDry] before.
	Warm, Window time.Duration
	// Units is how much work one call does; 0 stands for 1.
	Units int
	End   End
	// AtEdge, if not nil, is called when the window opens and when it closes.
	AtEdge func()
}

// Result is what happened while the window was open.
type Result struct {
	// Units is the work that was done, Window how long it took.
	Units  int
	Window time.Duration
	// P50 and P99 are of the calls that succeeded; 0 if none did.
	P50, P99 time.Duration
	// Failures is how many calls failed at any time, FirstFailure why one of the first did.
	Failures     int
	FirstFailure error
}

// Rate is the work done in a second; 0 if there was no time.
func (r Result) Rate() float64 {
	if r.Window <= 0 {
		return 0
	}
	return float64(r.Units) / r.Window.Seconds()
}

// Run puts the load on call and returns when the last call has returned. A call counts
// if it returned within the window, wherever it began. The error is that of ctx, if it
// ended before the window closed.
func (l Load) Run(ctx context.Context, call Call) (Result, error) {
	callCtx, cut := context.WithCancel(ctx)
	defer cut()
	r := running{call: call, dry: make(chan struct{})}
	done := make([]*work, l.Clients)
	var clients sync.WaitGroup
	for i := range done {
		done[i] = &work{}
		clients.Go(func() { r.clientLoop(callCtx, i, done[i]) })
	}
	var window interval
	if l.Warm > 0 {
		r.wait(ctx, l.Warm)
	}
	window.from = l.edge()
	r.wait(ctx, l.Window)
	window.to = l.edge()
	r.over.Store(true)
	if l.End == CutOff {
		cut()
	}
	clients.Wait()
	return l.result(window, done), context.Cause(ctx)
}

// edge returns the time of an edge of the window.
func (l Load) edge() time.Time {
	if l.AtEdge != nil {
		l.AtEdge()
	}
	return time.Now()
}

type interval struct{ from, to time.Time }

func (i interval) contains(t time.Time) bool { return !t.Before(i.from) && t.Before(i.to) }

func (l Load) result(window interval, done []*work) Result {
	result := Result{Window: window.to.Sub(window.from)}
	var took []time.Duration
	for _, w := range done {
		result.Failures += w.failures
		if result.FirstFailure == nil {
			result.FirstFailure = w.firstFailure
		}
		for _, s := range w.successes {
			if window.contains(s.at) {
				took = append(took, s.took)
			}
		}
	}
	result.Units = len(took) * max(l.Units, 1)
	result.P50, result.P99 = Quantile(took, 0.50), Quantile(took, 0.99)
	return result
}

// work is what one client has done.
type work struct {
	successes    []success
	failures     int
	firstFailure error
}

type success struct {
	at   time.Time
	took time.Duration
}

// running is a load under way.
type running struct {
	call    Call
	over    atomic.Bool
	runsDry sync.Once
	dry     chan struct{} // closed at the first ErrDry
}

// wait returns after d, or when ctx has ended or the work has run dry.
func (r *running) wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.dry:
	case <-ctx.Done():
	}
}

func (r *running) clientLoop(ctx context.Context, client int, w *work) {
	for !r.over.Load() && ctx.Err() == nil {
		sent := time.Now()
		err := r.call(ctx, client)
		now := time.Now()
		switch {
		case err == nil:
			w.successes = append(w.successes, success{at: now, took: now.Sub(sent)})
		case errors.Is(err, ErrDry):
			r.runsDry.Do(func() { close(r.dry) })
			return
		case ctx.Err() != nil: // cut off: not a failure
			return
		default:
			w.failures++
			if w.firstFailure == nil {
				w.firstFailure = err
			}
			time.Sleep(failurePause)
		}
	}
}
