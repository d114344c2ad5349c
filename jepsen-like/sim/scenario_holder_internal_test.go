package sim

import (
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/nemesis"
)

// acquireLate has holder 1 acquire a key, whose answers are held for a while, and cuts it
// off as soon as it has the lease.
func (s *stage) acquireLate(h *holder.Holder, key string, held time.Duration) *holder.Lease {
	s.t.Helper()
	for _, warm := range []string{"warm", "warmer"} { // connects to the leader
		ctx, cancel := within(time.Minute)
		if _, err := h.Acquire(ctx, warm); err != nil {
			s.t.Fatal(err)
		}
		cancel()
	}
	s.toHolder(0, nemesis.LinkState{Cut: true})
	timer := time.AfterFunc(held, func() { s.toHolder(0, nemesis.LinkState{}) })
	defer timer.Stop()
	ctx, cancel := within(time.Minute)
	defer cancel()
	l, err := h.Acquire(ctx, key)
	if err != nil {
		s.t.Fatal(err)
	}
	s.toHolder(0, nemesis.LinkState{Cut: true})
	s.fromHolder(0, nemesis.LinkState{Cut: true})
	return l
}

// next has holder 2 wait for the key, and looks whether the first still believes that it
// holds it.
func (s *stage) next(key string, first *holder.Lease, ttl time.Duration) {
	s.t.Helper()
	h, shut := s.holder(1, ttl)
	defer shut()
	ctx, cancel := within(time.Minute)
	defer cancel()
	second, err := h.Await(ctx, key)
	if err != nil {
		s.t.Fatal(err)
	}
	if first.Held() && second.Held() {
		s.caught("exclusion", "epochs %d and %d of %s are both held, the first for another %v", first.Epoch(), second.Epoch(), key, first.Remaining())
	}
}

// The answer to an acquire takes long: the lease is counted from when it was asked for.
func TestAnAnswerThatComesLate(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		s.leader()
		const ttl = 3 * time.Second
		h, shut := s.holder(0, ttl)
		defer shut()
		s.next("k", s.acquireLate(h, "k", 900*time.Millisecond), ttl)
	})
}

// The first try of an acquire was done and its answer got lost: the answer to a later
// try tells what remains, and no more is counted.
func TestAnAcquireThatIsAnsweredTheSecondTime(t *testing.T) {
	play(t, 3, nil, func(s *stage) {
		s.leader()
		const ttl = 3 * time.Second
		h, shut := s.holder(0, ttl)
		defer shut()
		s.next("k", s.acquireLate(h, "k", 1300*time.Millisecond), ttl)
	})
}
