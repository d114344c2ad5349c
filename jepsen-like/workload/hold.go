package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// Grant is one grant as its holder speaks of it.
type Grant struct {
	Key   string
	Epoch uint64
}

// HoldSink hears what a holder believes and does. Moments are on the clock that the
// holder was given.
type HoldSink interface {
	// Held says that the holder was certain to hold from a moment until another, which
	// may be to come: until then, unless it says otherwise.
	Held(g Grant, span Span)
	// Released and Fenced say that it is certain of nothing from a moment on.
	Released(g Grant, at time.Duration)
	Fenced(g Grant, at time.Duration)
	// Wrote tells of an attempt that the resource has decided about.
	Wrote(w history.Write)
}

// Span is from one moment until another.
type Span struct{ From, Until time.Duration }

// HoldOptions are what [Hold] works with.
type HoldOptions struct {
	Seed  uint64
	Name  string // of the holder, which is the owner of its leases
	Key   string
	TTL   time.Duration
	Store lease.Store
	// Clock is the holder library's; nil for its own.
	Clock lease.Clock
	// Now is the clock of what is told. It has to go at the pace of Clock.
	Now      func() time.Duration
	Resource Resource
	Sink     HoldSink
}

const (
	// sampleEvery is how often a holder says what it believes.
	sampleEvery = 20 * time.Millisecond
	// awaitTimeout bounds the wait for the key, so that waiting begins anew at times.
	awaitTimeout = 10 * time.Second
)

// Hold is the life of one holder of one key until ctx ends: it waits for the key, holds
// it for a while, and gives it up in one of the ways there are. It returns an error
// only if the resource or the store cannot be used at all.
func Hold(ctx context.Context, o HoldOptions) error {
	random := rand.New(rand.NewPCG(o.Seed, 0x686f6c6465720000))
	for ctx.Err() == nil {
		s := &session{
			HoldOptions: o,
			length:      200*time.Millisecond + time.Duration(random.IntN(2800))*time.Millisecond,
			write:       20*time.Millisecond + time.Duration(random.IntN(150))*time.Millisecond,
			end:         random.IntN(10), forgets: random.IntN(3) == 0,
			late: time.Duration(random.IntN(1500)) * time.Millisecond,
		}
		if err := s.run(ctx); err != nil {
			return err
		}
		if !sleep(ctx, time.Duration(random.IntN(400))*time.Millisecond) {
			break
		}
	}
	return nil
}

// session is one grant of a holder, from the wait for it to its end.
type session struct {
	HoldOptions
	length  time.Duration // to hold
	write   time.Duration // between writes
	end     int           // how it ends; see leave
	forgets bool
	late    time.Duration // after its end it writes once more, if it does

	lease *holder.Lease
	grant Grant
	held  bool
	sure  time.Duration // the latest moment at which it was certain
}

func (s *session) run(ctx context.Context) error {
	h, err := holder.New(s.Store, holder.Config{Owner: s.Name, TTL: s.TTL, Clock: s.Clock})
	if err != nil {
		return err
	}
	defer h.Close()
	await, cancel := context.WithTimeout(ctx, awaitTimeout)
	defer cancel()
	l, err := h.Await(await, s.Key)
	if invalid, ok := errors.AsType[*lease.InvalidError](err); ok {
		return invalid
	}
	if err != nil {
		return nil // the time was over, or the cluster is gone for now
	}
	s.lease, s.grant = l, Grant{Key: s.Key, Epoch: l.Epoch()}
	if err := s.work(ctx); err != nil {
		return err
	}
	s.leave()
	return s.writeLate(ctx)
}

// work samples and writes until the time is over or the lease is lost.
func (s *session) work(ctx context.Context) error {
	until, nextWrite := s.Now()+s.length, s.Now()
	for s.sample() && s.Now() < until && ctx.Err() == nil {
		if s.held && s.Now() >= nextWrite {
			nextWrite = s.Now() + s.write
			if err := s.writeNow(); err != nil {
				return err
			}
		}
		if s.held && s.forgets {
			s.forgets = false
			_ = s.lease.Forget(ctx) // what it was worth shows in the store's history
		}
		sleep(ctx, sampleEvery)
	}
	return nil
}

// sample says what the holder believes now, and returns false once it is over for good.
// What is said errs on the side of too little: from after it was asked, until counted
// from before.
func (s *session) sample() bool {
	before := s.Now()
	remaining := s.lease.Remaining()
	after := s.Now()
	if remaining > 0 {
		s.held, s.sure = true, before
		if until := before + remaining; after < until {
			s.Sink.Held(s.grant, Span{after, until})
		}
		return true
	}
	fence, _ := errors.AsType[*lease.FencedError](s.lease.Check())
	expired := fence == nil || fence.Reason == lease.ReasonExpiredLocally // nil: resumed just now
	if s.held {
		s.held = false
		at := before
		if !expired { // it may have been told so any time since
			at = s.sure
		}
		s.Sink.Fenced(s.grant, at)
	}
	return expired
}

func (s *session) writeNow() error {
	if s.lease.Check() != nil {
		return nil
	}
	return s.writeTo()
}

func (s *session) writeTo() error {
	w, err := s.Resource.Write(history.Write{Holder: s.Name, Key: s.Key, Token: s.grant.Epoch})
	if errors.Is(err, ErrBusy) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("write to the resource of %q: %w", s.Key, err)
	}
	s.Sink.Wrote(w)
	return nil
}

// leave ends the session: most often by a release, and else as a process that ends.
func (s *session) leave() {
	at := s.Now()
	if s.end >= 7 {
		s.Sink.Fenced(s.grant, at)
		return
	}
	s.Sink.Released(s.grant, at)
	release, cancel := context.WithTimeout(context.Background(), s.TTL)
	defer cancel()
	_ = s.lease.Release(release) // else it ends by itself
}

// writeLate writes, at times, under a lease that is over, as a process does that stood
// still: it is the resource's part to refuse that once there is a newer one.
func (s *session) writeLate(ctx context.Context) error {
	if s.end%3 != 0 || !sleep(ctx, s.late) {
		return nil
	}
	return s.writeTo()
}
