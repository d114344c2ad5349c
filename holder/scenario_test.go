package holder_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// What has gone wrong elsewhere, and must not here.

// resource refuses a token that is lower than one it has seen.
type resource struct{ seen uint64 }

func (r *resource) write(token uint64) bool {
	if token < r.seen {
		return false
	}
	r.seen = token
	return true
}

// A process that was stopped past its lease has run no timer when it is asked first.
func TestAStoppedProcessIsFencedAtTheFirstQuestion(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var data resource
		a := w.hold("r1", w.replica())
		work := a.Context()
		want(t, "the first write", data.write(a.Epoch()), true)
		synctest.Wait()
		w.pass(2 * ttl) // and no goroutine of the holder has run
		b := w.hold("r2", w.replica())
		want(t, "the new owner's write", data.write(b.Epoch()), true)
		want(t, "the first question", fence(a.Check()), "lease_expired_locally, expired")
		want(t, "the context, at once", fence(context.Cause(work)), "lease_expired_locally, expired")
		want(t, "the stopped one's write", data.write(a.Epoch()), false)
		wantCode(t, "its late renewal", a.Renew(t.Context()), lease.CodeLost)
		want(t, "then", fence(a.Check()), "lease_lost, superseded")
	})
}

// sleepless is a clock that, like CLOCK_BOOTTIME, goes on while the machine sleeps, and
// the timers with it do not.
type sleepless struct {
	lease.Clock
	mu    sync.Mutex
	slept time.Duration
}

func (s *sleepless) Monotonic() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Clock.Monotonic() + s.slept
}

func (s *sleepless) sleep(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slept += d
}

func TestAMachineThatSleptWakesUpFenced(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		clock := &sleepless{Clock: lease.NewSystemClock()}
		l := w.hold("r1", clock)
		work := l.Context()
		w.faulty.Cut() // the network is not up yet
		synctest.Wait()
		clock.sleep(time.Minute)
		want(t, "check", fence(l.Check()), "lease_expired_locally, expired")
		want(t, "context", fence(context.Cause(work)), "lease_expired_locally, expired")
	})
}

func TestTheContextOfAMachineThatSleptEndsWithoutAnyQuestion(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		clock := &sleepless{Clock: lease.NewSystemClock()}
		l := w.hold("r1", clock)
		w.faulty.Cut()
		work := l.Context()
		synctest.Wait() // the timers are set
		clock.sleep(time.Minute)
		start := time.Now()
		<-work.Done()
		if took := time.Since(start); took > time.Second {
			t.Errorf("only after %v", took)
		}
	})
}

func TestALeaseIsKeptForAsLongAsItsHolderLives(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", lease.NewSystemClock())
		work := l.Context()
		time.Sleep(time.Hour)
		succeed(t, "check", l.Check())
		succeed(t, "context", work.Err())
		want(t, "epoch", w.record().Record.Epoch, 1)
		if n := w.faulty.Calls(leasetest.Renew); n < 950 || n > 1250 {
			t.Errorf("%d renewals in an hour of leases of 10 s: not about three per lease", n)
		}
	})
}

// The committed renewal whose answer was lost is repeated, and so is the acquire: the
// deadline is that of the answered try, and the grant is one.
func TestWhatWasDoneAndNotHeardIsAskedAgain(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		w.faulty.FailNext(leasetest.Acquire, leasetest.Fault{LoseAnswer: true})
		w.faulty.FailNext(leasetest.Acquire, leasetest.Fault{Err: lease.ErrUnavailable})
		start := time.Now()
		l := w.hold("r1", lease.NewSystemClock())
		want(t, "tries", w.faulty.Calls(leasetest.Acquire), 3)
		want(t, "history", history(t, w.memory, aKey), "acquire:1")
		want(t, "the deadline is not that of a grant at the last try", l.Remaining(), window-time.Since(start))
		time.Sleep(time.Second)
		w.faulty.FailNext(leasetest.Renew, leasetest.Fault{LoseAnswer: true})
		wantCode(t, "renew", l.Renew(t.Context()), lease.CodeOutcomeUnknown)
		want(t, "what was not answered extends nothing", l.Remaining(), window-time.Since(start))
		time.Sleep(time.Millisecond)
		succeed(t, "renew again", l.Renew(t.Context()))
		want(t, "remaining", l.Remaining(), window)
		want(t, "history", history(t, w.memory, aKey), "acquire:1 renew:1 renew:1")
	})
}

func TestAnAcquireThatEndedBeforeItsAnswerStartsAgainUnderAnotherID(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		w.faulty.FailNext(leasetest.Acquire, leasetest.Fault{DelayAfter: time.Hour}) // given up after a ttl
		l := acquire(t, h, aKey)
		want(t, "epoch", l.Epoch(), 2)
		want(t, "history", history(t, w.memory, aKey), "acquire:1 acquire:2")
	})
}

func TestAnAcquireThatIsGivenUpSaysWhetherItMayHaveBeenDone(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", lease.NewSystemClock())
		w.faulty.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := h.Acquire(ctx, aKey)
		wantCode(t, "never sent", err, lease.CodeUnavailable)
		w.faulty.Heal()
		w.faulty.FailNext(leasetest.Acquire, leasetest.Fault{LoseAnswer: true})
		w.faulty.FailAll(leasetest.Acquire, leasetest.Fault{Err: lease.ErrUnavailable})
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = h.Acquire(ctx, aKey)
		wantCode(t, "sent once", err, lease.CodeOutcomeUnknown)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, lease.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
}

func TestTwoProcessesWithOneOwnerAreTwo(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.hold("r1", w.replica())
		for _, owner := range []string{"r1", "r1 ", "R1"} {
			_, err := w.holder(owner, w.replica()).Acquire(t.Context(), aKey)
			wantCode(t, owner, err, lease.CodeHeld)
		}
		succeed(t, "release", l.Release(t.Context()))
		other := w.hold("r1", w.replica())
		want(t, "epoch", other.Epoch(), 2)
		succeed(t, "the former releases again", l.Release(t.Context()))
		succeed(t, "the later", other.Check())
	})
}

func TestOneHolderDoesNotHaveAKeyTwice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := w.holder("r1", w.replica())
		acquire(t, h, aKey)
		_, err := h.Acquire(t.Context(), aKey)
		wantCode(t, "acquire again", err, lease.CodeHeld)
	})
}

// Five contenders for one key, a thousand rounds: whoever holds dies without a word.
func TestAThousandTakeovers(t *testing.T) {
	const rounds, contenders = 1000, 5
	inLiveWorld(t, func(t *testing.T, w *world) {
		type term struct {
			epoch    uint64
			from, to time.Duration // as the owner saw it: [from, to)
		}
		var mu sync.Mutex
		var terms []term
		clock := lease.NewSystemClock()
		ctx, cancel := context.WithCancel(t.Context())
		var joined sync.WaitGroup
		for i := range contenders {
			joined.Go(func() {
				for life := 0; ctx.Err() == nil; life++ {
					h, err := holder.New(w.faulty, holder.Config{Owner: fmt.Sprintf("r%d", i), TTL: time.Second, Clock: clock})
					if err != nil {
						t.Error(err)
						return
					}
					l, err := h.Await(ctx, aKey)
					if err != nil {
						h.Close()
						return
					}
					from := clock.Monotonic()
					time.Sleep(time.Duration(l.Epoch()%7) * 100 * time.Millisecond)
					succeed(t, "check", l.Check())
					mu.Lock()
					terms = append(terms, term{l.Epoch(), from, clock.Monotonic() + l.Remaining()})
					if len(terms) == rounds {
						cancel()
					}
					mu.Unlock()
					h.Close() // killed: it tells nobody
				}
			})
		}
		joined.Wait()
		cancel()
		for i, now := range terms {
			want(t, "epoch", now.epoch, uint64(i+1))
			if i > 0 && now.from < terms[i-1].to {
				t.Errorf("epoch %d begins %v before epoch %d ends", now.epoch, terms[i-1].to-now.from, terms[i-1].epoch)
			}
		}
	})
}

func TestAWallClockThatJumpsChangesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		clock := w.replica()
		l := w.hold("r1", clock)
		for _, years := range []int{1, -1} {
			clock.SetWall(clock.Wall().AddDate(years, 0, 0))
			w.clock.SetWall(w.clock.Wall().AddDate(-years, 0, 0))
			w.advance(time.Second)
			succeed(t, "check", l.Check())
			succeed(t, "renew", l.Renew(t.Context()))
			want(t, "remaining", l.Remaining(), window)
			want(t, "remaining at the store", w.record().Remaining, ttl)
		}
		w.advance(window)
		want(t, "check", fence(l.Check()), "lease_expired_locally, expired")
	})
}
