package leasetest

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/leasenode/leasenode/lease"
)

var _ lease.Store = (*Memory)(nil)

// Memory is a [lease.Store] in memory: the rules, and nothing else. It is one
// node that is always the leader, so both consistencies are one, and its clock
// never loses time. It has no limit on the number of keys. It is safe for
// concurrent use; operations happen one after the other. Make one with
// [NewMemory].
//
// A call whose context has ended before it began does nothing and returns
// [lease.ErrUnavailable] with the context's cause; one whose context ends while it
// waits in line returns its [*lease.HeldError] with the cause. An outcome is never
// unknown. It can be watched: see [Memory.Watch]. Waits are counted by package time, whatever the clock; a lease that ends
// by the clock is handed over within 100 ms.
type Memory struct {
	clock  lease.Clock
	origin lease.Instant // the instant at which clock's monotonic reading is 0
	// cluster is the id in positions, so that none is taken for one of another store.
	cluster string

	mu      sync.Mutex
	index   uint64
	entries uint64 // how many entries were ever logged
	keys    map[string]*keyState
	lines   map[string][]*waiter // by key, in the order of their coming
	log     []logged             // of all keys, at most maxLogged
	events  events
}

// keyState is what is kept of one key.
type keyState struct {
	record    lease.Record
	requestID string // of the current grant
	trail     trail
}

// NewMemory returns an empty store that runs on clock. Its cluster clock starts at
// clock's time of day and follows its monotonic reading.
func NewMemory(clock lease.Clock) *Memory {
	start := lease.Instant(clock.Wall().UnixNano())
	return &Memory{clock: clock, origin: start.Add(-clock.Monotonic()), cluster: "memory-" + unique(), keys: map[string]*keyState{}, lines: map[string][]*waiter{}}
}

// Acquire implements [lease.Store].
func (m *Memory) Acquire(ctx context.Context, req lease.AcquireRequest) (lease.Answer, error) {
	if req.Wait != 0 {
		return m.wait(ctx, req)
	}
	return m.one(ctx, req.Mutation())
}

// Renew implements [lease.Store].
func (m *Memory) Renew(ctx context.Context, req lease.RenewRequest) (lease.Answer, error) {
	return m.one(ctx, req.Mutation())
}

// Release implements [lease.Store].
func (m *Memory) Release(ctx context.Context, req lease.ReleaseRequest) (lease.Answer, error) {
	if req.To != "" {
		return m.releaseTo(ctx, req)
	}
	return m.one(ctx, req.Mutation())
}

// Forget implements [lease.Store].
func (m *Memory) Forget(ctx context.Context, req lease.ForgetRequest) (lease.Answer, error) {
	return m.one(ctx, req.Mutation())
}

// BatchRenew implements [lease.Store]. All renewals are decided at one instant and
// have one index. A renewal outside a limit fails alone.
func (m *Memory) BatchRenew(ctx context.Context, reqs []lease.RenewRequest) ([]lease.Outcome, error) {
	if len(reqs) > lease.MaxBatchRenew {
		return nil, &lease.InvalidError{Field: "renewals", Problem: fmt.Sprintf("has %d", len(reqs)), Limit: fmt.Sprintf("at most %d", lease.MaxBatchRenew)}
	}
	batch := make([]lease.Mutation, len(reqs))
	for i, req := range reqs {
		batch[i] = req.Mutation()
	}
	return m.apply(ctx, batch)
}

func (m *Memory) one(ctx context.Context, mutation lease.Mutation) (lease.Answer, error) {
	if err := mutation.Validate(); err != nil {
		return lease.Answer{}, err
	}
	outcomes, err := m.apply(ctx, []lease.Mutation{mutation})
	if err != nil {
		return lease.Answer{}, err
	}
	return outcomes[0].Answer, outcomes[0].Err
}

func (m *Memory) apply(ctx context.Context, batch []lease.Mutation) ([]lease.Outcome, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mutation := range batch {
		m.serveLocked(mutation.Key)
	}
	s := m.stepLocked()
	outcomes := make([]lease.Outcome, len(batch))
	for i, mutation := range batch {
		outcomes[i] = m.decideLocked(s, mutation)
		if mutation.Op != lease.OpRelease || outcomes[i].Err != nil {
			continue
		}
		if w := m.headLocked(mutation.Key, ""); w != nil {
			m.grantLocked(s, w)
		}
	}
	return outcomes, nil
}

// step is when a batch of mutations is decided.
type step struct {
	now  lease.Instant
	wall time.Time
}

func (m *Memory) decideLocked(s step, mutation lease.Mutation) lease.Outcome {
	if err := mutation.Validate(); err != nil {
		return lease.Outcome{Err: err}
	}
	m.findEndsLocked(s)
	before := keyState{record: lease.Record{Key: mutation.Key}}
	if state, known := m.keys[mutation.Key]; known {
		before = *state
	}
	after, changed, err := decide(before, mutation, s.now)
	if err != nil {
		return lease.Outcome{Err: err}
	}
	if changed {
		after.trail = before.trail.with(m.logLocked(s, after.record.Epoch, mutation))
		m.keys[mutation.Key] = &after
		m.events.changed(s, m.index, mutation.Op, before.record, after.record)
	}
	answer := answerAt(after.record, s.now)
	answer.Changed = changed
	if mutation.TTL > 0 {
		answer.Remaining = min(answer.Remaining, mutation.TTL)
	}
	return lease.Outcome{Answer: answer}
}

func (m *Memory) nowLocked() lease.Instant { return m.origin.Add(m.clock.Monotonic()) }

// answerAt gives out a copy, so that no caller can reach into the store.
func answerAt(record lease.Record, now lease.Instant) lease.Answer {
	record.Attributes = maps.Clone(record.Attributes)
	return lease.Answer{Record: record, Now: now, Remaining: record.RemainingAt(now)}
}

// ended returns the error of a call whose context is over before anything was done.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %w", lease.ErrUnavailable, context.Cause(ctx))
	}
	return nil
}
