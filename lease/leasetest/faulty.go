package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasenode/leasenode/lease"
)

var _ lease.Store = (*Faulty)(nil)

// Method names a method of [lease.Store].
type Method string

// The methods.
const (
	Acquire    Method = "Acquire"
	Renew      Method = "Renew"
	BatchRenew Method = "BatchRenew"
	Release    Method = "Release"
	Forget     Method = "Forget"
	Get        Method = "Get"
	List       Method = "List"
	History    Method = "History"
)

// Fault is what goes wrong with a call. The zero fault is none.
type Fault struct {
	// DelayBefore passes before the inner store is asked. A context that ends
	// meanwhile gives [lease.ErrUnavailable]: nothing was done.
	DelayBefore time.Duration
	// Err is returned instead of asking the inner store.
	Err error
	// DelayAfter passes between what the inner store did and its answer. A context
	// that ends meanwhile loses the answer; with a delay longer than any context,
	// the call is accepted and never answered.
	DelayAfter time.Duration
	// LoseAnswer has the inner store do it, and loses what it answered: a mutation
	// returns [lease.ErrOutcomeUnknown], a read [lease.ErrUnavailable].
	LoseAnswer bool
}

// Faulty is a [lease.Store] in front of another, with everything between them
// that a network does to a caller. Without a fault it changes nothing. It is safe
// for concurrent use and obeys contexts also while it delays. Make one with
// [NewFaulty].
//
// Delays are counted by package time, whatever clock the inner store has.
type Faulty struct {
	inner lease.Store

	mu       sync.Mutex
	cut      bool
	next     map[Method][]Fault
	standing map[Method]Fault
	calls    map[Method]int
	inFlight int
	peak     int
	acquired func(lease.Answer)
}

// NewFaulty returns inner without any fault.
func NewFaulty(inner lease.Store) *Faulty {
	return &Faulty{inner: inner, next: map[Method][]Fault{}, standing: map[Method]Fault{}, calls: map[Method]int{}}
}

// Cut begins an outage: until [Faulty.Heal], calls return [lease.ErrUnavailable]
// without reaching the inner store. Of a call that is under way, the effect is
// prevented if it is still to come, and else the answer is lost.
func (f *Faulty) Cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
}

// Heal ends the outage.
func (f *Faulty) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = false
}

// FailNext gives the next call of method this fault. Faults given before it is
// called are used up in their order, one a call, and come before a standing fault.
func (f *Faulty) FailNext(method Method, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next[method] = append(f.next[method], fault)
}

// FailAll gives every later call of method this fault, until it is replaced; the
// zero fault ends it.
func (f *Faulty) FailAll(method Method, fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.standing[method] = fault
}

// AfterAcquire has hook called with the answer of every acquire that the inner
// store granted, before the caller is told; nil ends it. It runs on the caller's
// goroutine, possibly several at a time, and may use the Faulty.
func (f *Faulty) AfterAcquire(hook func(lease.Answer)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acquired = hook
}

// Calls returns how often method was called, failures and refusals included.
func (f *Faulty) Calls(method Method) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[method]
}

// Peak returns how many calls were under way at once at most, of all methods.
func (f *Faulty) Peak() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.peak
}

// begin counts a call and returns its fault.
func (f *Faulty) begin(method Method) Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[method]++
	f.inFlight++
	f.peak = max(f.peak, f.inFlight)
	if queue := f.next[method]; len(queue) > 0 {
		f.next[method] = queue[1:]
		return queue[0]
	}
	return f.standing[method]
}

func (f *Faulty) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight--
}

func (f *Faulty) isCut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

// through sends one call through its fault to the inner store and back.
func through[T any](ctx context.Context, f *Faulty, method Method, call func(context.Context) (T, error)) (T, error) {
	var none T
	fault := f.begin(method)
	defer f.end()
	if err := f.wait(ctx, fault.DelayBefore); err != nil {
		return none, fmt.Errorf("%s did not get through: %w: %w", method, lease.ErrUnavailable, err)
	}
	if fault.Err != nil {
		return none, fault.Err
	}
	result, err := call(ctx)
	if err := f.wait(ctx, fault.DelayAfter); err != nil {
		return none, fmt.Errorf("%s was not answered: %w: %w", method, lossOf(method), err)
	}
	if fault.LoseAnswer {
		return none, fmt.Errorf("%s was not answered: %w: %w", method, lossOf(method), errAnswerLost)
	}
	return result, err
}

// lossOf returns what a caller knows who gets no answer.
func lossOf(method Method) error {
	switch method {
	case Get, List, History:
		return lease.ErrUnavailable
	default:
		return lease.ErrOutcomeUnknown
	}
}

// wait returns after d, or why no one will hear of the call any more.
func (f *Faulty) wait(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if f.isCut() {
		return errCut
	}
	return nil
}

var (
	errCut        = errors.New("injected outage")
	errAnswerLost = errors.New("injected loss of the answer")
)

// Acquire implements [lease.Store].
func (f *Faulty) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	return through(ctx, f, Acquire, func(ctx context.Context) (lease.Answer, error) {
		answer, err := f.inner.Acquire(ctx, req)
		if err == nil {
			f.runHook(answer)
		}
		return answer, err
	})
}

func (f *Faulty) runHook(answer lease.Answer) {
	f.mu.Lock()
	hook := f.acquired
	f.mu.Unlock()
	if hook != nil {
		hook(answer)
	}
}

// Renew implements [lease.Store].
func (f *Faulty) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	return through(ctx, f, Renew, func(ctx context.Context) (lease.Answer, error) { return f.inner.Renew(ctx, req) })
}

// BatchRenew implements [lease.Store].
func (f *Faulty) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	return through(ctx, f, BatchRenew, func(ctx context.Context) ([]lease.Outcome, error) { return f.inner.BatchRenew(ctx, reqs) })
}

// Release implements [lease.Store].
func (f *Faulty) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	return through(ctx, f, Release, func(ctx context.Context) (lease.Answer, error) { return f.inner.Release(ctx, req) })
}

// Forget implements [lease.Store].
func (f *Faulty) Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
	return through(ctx, f, Forget, func(ctx context.Context) (lease.Answer, error) { return f.inner.Forget(ctx, req) })
}

// Get implements [lease.Store].
func (f *Faulty) Get(ctx context.Context, req lease.GetRequest) (lease.Answer, error) {
	return through(ctx, f, Get, func(ctx context.Context) (lease.Answer, error) { return f.inner.Get(ctx, req) })
}

// List implements [lease.Store].
func (f *Faulty) List(ctx context.Context, req lease.ListRequest) (lease.ListPage, error) {
	return through(ctx, f, List, func(ctx context.Context) (lease.ListPage, error) { return f.inner.List(ctx, req) })
}

// History implements [lease.Store].
func (f *Faulty) History(ctx context.Context, req lease.HistoryRequest) (lease.HistoryPage, error) {
	return through(ctx, f, History, func(ctx context.Context) (lease.HistoryPage, error) { return f.inner.History(ctx, req) })
}
