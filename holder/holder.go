package holder

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/leasenode/leasenode/lease"
)

// Holder owns leases on behalf of this process: it acquires them, renews them in the
// background, many in one request, and stops being their owner in time. All methods
// are safe for concurrent use. One holder is enough for a process, however many keys.
//
// It keeps one goroutine, one more if there is a callback, and one for each request
// under way; an idle lease costs no goroutine.
type Holder struct {
	store  lease.Store
	config Config
	terms  terms
	clock  lease.Clock
	log    hclog.Logger
	counts counts
	// contact is whether the store serves what this holder asks.
	contact contact

	changes *changes
	wake    chan struct{} // has a token if the schedule changed
	stop    chan struct{} // closed by Close
	life    context.Context
	end     context.CancelFunc
	joined  sync.WaitGroup // the loop, and the renewals it has sent

	mu       sync.Mutex
	leases   map[*Lease]struct{} // those that have not ended
	schedule schedule
	armed    time.Duration // until when the loop sleeps; 0 while it is awake
	closed   bool
}

// New returns a holder that owns its leases in store: a [*Client], or any other, such
// as that of package leasetest in a test. Close it in the end. A config that would
// leave no usable window, or that the store would refuse, is an [*lease.InvalidError]
// for each fault, and the store hears nothing of it.
func New(store lease.Store, config Config) (*Holder, error) {
	if err := config.validate(); err != nil {
		return nil, fmt.Errorf("new holder: %w", err)
	}
	config = config.withDefaults()
	h := &Holder{
		store: store, config: config, terms: terms{ttl: config.TTL, margin: config.Margin},
		clock: config.Clock, log: config.Logger, changes: startChanges(config.OnChange),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), leases: map[*Lease]struct{}{},
	}
	h.contact.log = config.Logger
	h.life, h.end = context.WithCancel(context.Background())
	h.joined.Go(h.renewLoop)
	return h, nil
}

// Close stops every lease at once, as [Lease.Release] does, but does not give it back
// to the store, where it ends by itself: release first what others shall have sooner.
// It returns when all that runs for the holder has ended, callbacks included. Another
// call does nothing more.
func (h *Holder) Close() {
	h.mu.Lock()
	var held []*Lease
	for l := range h.leases {
		held = append(held, l)
	}
	first := !h.closed
	h.closed = true
	h.mu.Unlock()
	if first {
		close(h.stop)
		h.end()
	}
	for _, l := range held {
		l.mu.Lock()
		l.endLocked(lease.ReasonReleased, lease.CauseReleased)
		l.mu.Unlock()
	}
	h.joined.Wait()
	h.changes.close()
}

// Acquire asks for key and returns the lease of it. It does not wait for a key that is
// held: see [Holder.Await]. While the store cannot be reached it goes on trying, under
// one request id, so that the key is granted once, until ctx ends.
//
// Errors: a [*lease.HeldError], also if this holder has the key already; a
// [*lease.LostError] if the answer took so long that nothing usable was left, in which
// case the lease was handed back; [*lease.InvalidError], [*lease.ExhaustedError]; and,
// when ctx has ended, [lease.ErrUnavailable] or [lease.ErrOutcomeUnknown]. After the
// latter the key may be granted to nobody who knows of it, until a ttl has passed.
func (h *Holder) Acquire(ctx context.Context, key string) (*Lease, error) {
	return h.obtain(ctx, key, atOnce)
}

// patience is what to do about a key that is held.
type patience uint8

const (
	atOnce patience = iota // take the refusal
	inLine                 // wait
)

func (h *Holder) obtain(ctx context.Context, key string, p patience) (*Lease, error) {
	if err := lease.ValidateKey(key); err != nil {
		return nil, err
	}
	ctx, cancel := h.whileOpen(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("acquire %q: %w: %w", key, lease.ErrUnavailable, context.Cause(ctx))
	}
	answer, sent, err := h.acquire(ctx, key, p)
	if err != nil {
		return nil, h.about("acquire", key, err)
	}
	l := &Lease{holder: h, key: key, epoch: answer.Record.Epoch, floor: answer.Record.ForgottenAtEpoch, entry: entry{index: -1}}
	if err := h.begin(l, proof{sent: sent, remaining: min(answer.Remaining, h.terms.ttl)}); err != nil {
		back, cancel := context.WithTimeout(context.WithoutCancel(ctx), h.terms.try(h.terms.ttl))
		defer cancel()
		if failed := h.releaseOne(back, l); failed != nil {
			h.log.Warn("could not hand back a lease that came too late: it ends by itself", "key", key, "epoch", l.epoch, "error", failed)
		}
		return nil, fmt.Errorf("acquire %q: %w", key, err)
	}
	return l, nil
}

// begin makes l, which the store has granted, a lease that is held.
func (h *Holder) begin(l *Lease, p proof) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = p.end()
	l.dueLocked(p.sent, h.terms.interval())
	if h.clock.Monotonic() >= l.deadlineLocked() {
		record := lease.Record{Key: l.key, Owner: l.Owner(), Epoch: l.epoch, ForgottenAtEpoch: l.floor}
		return fmt.Errorf("the answer took longer than the lease can be used, which was handed back: %w", &lease.LostError{Record: record})
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return fmt.Errorf("%w: %w", errClosed, lease.ErrUnavailable)
	}
	h.leases[l] = struct{}{}
	h.mu.Unlock()
	h.counts.acquired.Add(1)
	h.tell(l)
	l.scheduleLocked()
	return nil
}

// acquire tries until the store has answered or ctx ends, under one request id; under
// another if the answer is that the grant of the first has ended meanwhile: it never
// held anything. In line, the answer that the key is held is none.
func (h *Holder) acquire(ctx context.Context, key string, p patience) (answer lease.Answer, sent time.Duration, err error) {
	req := lease.AcquireRequest{Key: key, Owner: h.config.Owner, TTL: h.terms.ttl, Attributes: h.config.Attributes, RequestID: rand.Text()}
	if p == inLine {
		req.Wait = lease.LongestPoll(h.terms.ttl)
		if _, ok := h.store.(*Client); ok {
			// It sends the polls itself, and says which one was answered. From any other store
			// a lease is counted from the call: that is the poll, then.
			req.Wait, req.RequestID = lease.MaxWait, ""
		}
	}
	var unknown error
	for n := 0; ; n++ {
		began := time.Now()
		sent = h.ask(ctx, &h.counts.failed, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, h.terms.ttl+req.Wait)
			defer cancel()
			answer, err = h.store.Acquire(ctx, req)
			return err
		})
		_, lost := asLost(err)
		held, refused := errors.AsType[*lease.HeldError](err)
		switch {
		case err == nil:
			return answer, sent, nil
		case refused && p == inLine:
			lease.TellWaiting(ctx, *held)
			if h.again(ctx, held.Remaining, time.Since(began) < req.Wait/2) {
				n, unknown = -1, nil
				continue
			}
			return answer, sent, fmt.Errorf("%w: %w", held, context.Cause(ctx))
		case lost:
			unknown = nil
			if req.RequestID != "" {
				req.RequestID = rand.Text()
			}
		case errors.Is(err, lease.ErrOutcomeUnknown):
			unknown = err
		case !errors.Is(err, lease.ErrUnavailable):
			return answer, sent, err
		}
		if ctx.Err() != nil || !pause(ctx, n) {
			return answer, sent, giveUp(ctx, err, unknown)
		}
	}
}

// again returns true when it is time to wait on: at once, or after a pause if the store
// did not wait; and false when ctx has ended, or leaves no time to be heard.
func (h *Holder) again(ctx context.Context, remaining time.Duration, early bool) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < 2*minTry {
		<-ctx.Done()
	}
	if ctx.Err() == nil && early {
		return sleep(ctx, h.turnIn(remaining))
	}
	return ctx.Err() == nil
}

// Await is [Holder.Acquire] for who has time: it waits its turn, first come, first
// served, until the key is granted or ctx ends. Under a context of [lease.OnWaiting] it
// tells who holds the key meanwhile. If the leader of the store changes, the place in
// line is kept by how long the call has waited. When ctx ends the error is a
// [*lease.HeldError] with the cause if the key was certainly not granted, and else
// [lease.ErrOutcomeUnknown]: then the cluster takes it back.
func (h *Holder) Await(ctx context.Context, key string) (*Lease, error) {
	ctx, cancel := h.whileOpen(ctx)
	defer cancel()
	for {
		l, err := h.obtain(ctx, key, inLine)
		if _, lost := asLost(err); !lost || !sleep(ctx, h.turnIn(0)) {
			return l, err
		}
	}
}

// whileOpen returns ctx, ended also by Close.
func (h *Holder) whileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if h.life.Err() != nil {
		cancel(errClosed)
	}
	unbind := context.AfterFunc(h.life, func() { cancel(errClosed) })
	return ctx, func() {
		unbind()
		cancel(nil)
	}
}

var errClosed = errors.New("the holder is closed")

// turnIn returns when to look again after a key that has remaining to go, at most.
func (h *Holder) turnIn(remaining time.Duration) time.Duration {
	return spread(min(remaining, h.terms.ttl/4)) + mathrand.N(leastPause)
}

// tell notes a change of l, whose mutex is held, in the log, the counts and for the
// callback.
func (h *Holder) tell(l *Lease) {
	state := stateOf(l.fence)
	switch state {
	case StateHeld:
		h.log.Info("held", "key", l.key, "epoch", l.epoch)
	case StateFenced:
		h.counts.fenced.Add(1)
		h.log.Warn("fenced", "key", l.key, "epoch", l.epoch, "cause", l.fence.Cause)
	case StateLost:
		h.counts.lost.Add(1)
		h.log.Warn("lost", "key", l.key, "epoch", l.epoch, "cause", l.fence.Cause)
	case StateReleased:
		h.counts.released.Add(1)
		h.log.Info("released", "key", l.key, "epoch", l.epoch)
	}
	h.changes.add(Change{Lease: l, State: state, Fence: l.fence})
}

// sleep returns true after d, or false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// spread returns d, more or less by a tenth, so that what began together does not go
// on together.
func spread(d time.Duration) time.Duration { return d - d/10 + mathrand.N(d/10*2+1) }
