package fsm

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// This file has the rules. It is a pure function of the state before, the entry
// and its place in the log: no clock, no randomness, no map order, no logging and
// no I/O but reading the state.

// records is the state that an entry is applied to.
type records interface {
	// record returns what is stored of key, or nil if it was never granted.
	record(key string) (*stored, error)
}

// Opened is the response to an opening entry.
type Opened struct {
	// Term is the term that the log gives the entry.
	Term uint64
	// Now is the cluster clock, from which the leader counts on.
	Now lease.Instant
}

// effects are what an entry does.
type effects struct {
	// meta is the meta after it; counts of references and the sum follow from
	// changes and are left to whoever carries them out.
	meta meta
	// changes are the granted operations, in order.
	changes []change
	// response is what its proposer is told.
	response any
}

// change is one granted operation.
type change struct {
	op       lease.Op
	position Position
	before   *stored // nil if the key was never granted
	after    *stored
}

// applyEntry returns what e does to the state with meta m and records base. The
// error is one of reading base, or an [*InvariantError]; nothing is done then.
func applyEntry(base records, m meta, e entry) (effects, error) {
	if e.kind == kindOpening {
		if !m.opened {
			m.opened, m.settings = true, e.opening.Settings
			m.now = lease.Instant(wallNanos(e.opening.Wall))
		}
		return effects{meta: m, response: Opened{Term: m.term, Now: m.now}}, nil
	}
	if e.stamp.Term != m.term {
		return effects{meta: m, response: &TermError{Entry: e.stamp.Term, Log: m.term}}, nil
	}
	if !m.opened {
		return effects{}, &InvariantError{Problem: "a batch before the first opening, when there is no clock"}
	}
	m.now = max(m.now, e.stamp.Reading)
	d := &draft{base: base, meta: m, wall: wallNanos(e.stamp.Wall), latest: make(map[string]*stored, len(e.mutations))}
	outcomes := make([]lease.Outcome, len(e.mutations))
	for i, mutation := range e.mutations {
		var err error
		if outcomes[i], err = d.mutate(mutation, uint32(i)); err != nil {
			return effects{}, err
		}
	}
	return effects{meta: d.meta, changes: d.changes, response: outcomes}, nil
}

// draft is a batch in the making: later mutations see what earlier ones did.
type draft struct {
	base    records
	meta    meta
	wall    uint64
	latest  map[string]*stored // what this batch has changed; looked up only
	changes []change
}

// mutate decides m. Refusals are outcomes; the error is one that must stop the node.
func (d *draft) mutate(m lease.Mutation, ordinal uint32) (lease.Outcome, error) {
	if err := m.Validate(); err != nil {
		return lease.Outcome{Err: err}, nil
	}
	current, err := d.record(m.Key)
	if err != nil {
		return lease.Outcome{}, err
	}
	s := step{draft: d, mutation: m, ordinal: ordinal, before: current, record: lease.Record{Key: m.Key}}
	if current != nil {
		s.record = current.record
	}
	switch m.Op {
	case lease.OpAcquire:
		return s.acquire()
	case lease.OpRenew:
		return s.renew()
	case lease.OpRelease:
		return s.release()
	default:
		return s.forget()
	}
}

func (d *draft) record(key string) (*stored, error) {
	if s, ok := d.latest[key]; ok {
		return s, nil
	}
	return d.base.record(key)
}

// step is one mutation on its way: within the limits, with the record that it
// meets.
type step struct {
	draft    *draft
	mutation lease.Mutation
	ordinal  uint32
	before   *stored      // nil if the key was never granted
	record   lease.Record // before's, or one with the key only
}

func (s step) acquire() (lease.Outcome, error) {
	m, now := s.mutation, s.draft.meta.now
	over := s.record.OverAt(now)
	if m.RequestID != "" && s.before != nil {
		// A retry is the same attempt as the first: its grant, or the news that it is
		// over. Never another grant, whoever has the key now.
		if s.before.requestID == m.RequestID && s.record.Owner == m.Owner && !over {
			return s.found(min(s.record.RemainingAt(now), m.TTL)), nil
		}
		if s.before.remembers(m.Owner, m.RequestID) {
			return s.lost(), nil
		}
	}
	switch {
	case !over:
		return lease.Outcome{Err: &lease.HeldError{Record: s.record, Remaining: s.record.RemainingAt(now)}}, nil
	case s.before == nil && s.draft.meta.keys >= s.draft.meta.settings.MaxKeys:
		return lease.Outcome{Err: &lease.ExhaustedError{Resource: "keys", Limit: s.draft.meta.settings.MaxKeys, Key: m.Key}}, nil
	case s.record.Epoch == lease.MaxEpoch:
		return lease.Outcome{Err: &lease.ExhaustedError{Resource: "epochs", Limit: lease.MaxEpoch, Key: m.Key}}, nil
	}
	s.record.Owner, s.record.Attributes = m.Owner, m.Attributes
	s.record.Epoch++
	s.record.LeaseUntil = now.Add(m.TTL)
	return s.done(m.TTL)
}

func (s step) renew() (lease.Outcome, error) {
	if !s.current() || s.record.OverAt(s.draft.meta.now) {
		return s.lost(), nil
	}
	ttl := s.mutation.TTL
	end := s.draft.meta.now.Add(ttl)
	if end <= s.record.LeaseUntil {
		return s.found(ttl), nil // there is more, and more than was asked for is never told
	}
	s.record.LeaseUntil = end
	return s.done(ttl)
}

func (s step) release() (lease.Outcome, error) {
	if !s.current() {
		return s.lost(), nil
	}
	if s.record.OverAt(s.draft.meta.now) {
		return s.found(0), nil
	}
	s.record.LeaseUntil = s.draft.meta.now
	return s.done(0)
}

func (s step) forget() (lease.Outcome, error) {
	now := s.draft.meta.now
	if !s.current() || s.record.OverAt(now) {
		return s.lost(), nil
	}
	if s.record.ForgottenAtEpoch == s.record.Epoch {
		return s.found(s.record.RemainingAt(now)), nil
	}
	s.record.ForgottenAtEpoch = s.record.Epoch
	return s.done(s.record.RemainingAt(now))
}

// current reports whether the mutation speaks for the latest grant.
func (s step) current() bool {
	return s.before != nil && s.record.Owner == s.mutation.Owner && s.record.Epoch == s.mutation.Epoch
}

func (s step) lost() lease.Outcome {
	return lease.Outcome{Err: &lease.LostError{Record: s.record, Remaining: s.record.RemainingAt(s.draft.meta.now)}}
}

// found answers a mutation whose work is done already.
func (s step) found(remaining time.Duration) lease.Outcome {
	return lease.Outcome{Answer: lease.Answer{Record: s.record, Now: s.draft.meta.now, Remaining: remaining}}
}

// done writes the step's record and answers with it.
func (s step) done(remaining time.Duration) (lease.Outcome, error) {
	requestID := s.mutation.RequestID
	var history []operation
	if s.before != nil {
		history = s.before.history
		if s.mutation.Op != lease.OpAcquire {
			requestID = s.before.requestID
		}
	}
	o := operation{
		op: s.mutation.Op, position: Position{Index: s.draft.meta.index, Ordinal: s.ordinal},
		at: s.draft.meta.now, wall: s.draft.wall, epoch: s.record.Epoch, owner: s.record.Owner,
	}
	if o.op == lease.OpAcquire {
		o.requestID = requestID
	}
	after := &stored{record: s.record, requestID: requestID, history: remember(history, o, s.draft.meta.settings)}
	if err := s.draft.write(s.before, change{op: o.op, position: o.position, after: after}); err != nil {
		return lease.Outcome{}, err
	}
	return lease.Outcome{Answer: lease.Answer{Record: s.record, Now: s.draft.meta.now, Remaining: remaining, Changed: true}}, nil
}

// write is the one function by which a record changes. It refuses, with an
// [*InvariantError], what no caller may do.
func (d *draft) write(before *stored, c change) error {
	if err := checkChange(before, c); err != nil {
		return err
	}
	if before == nil {
		d.meta.keys++
	}
	record := c.after.record
	d.meta.latestEnd = max(d.meta.latestEnd, record.LeaseUntil)
	d.latest[record.Key] = c.after
	c.before = before
	d.changes = append(d.changes, c)
	return nil
}

// checkChange returns an [*InvariantError] if c may not follow before, which is
// nil for a key that was never granted.
func checkChange(before *stored, c change) error {
	var old lease.Record
	if before != nil {
		old = before.record
	}
	if c.after == nil {
		return &InvariantError{Key: old.Key, Problem: "a record would be removed"}
	}
	record := c.after.record
	broken := func(format string, args ...any) error {
		return &InvariantError{Key: record.Key, Problem: fmt.Sprintf(format, args...)}
	}
	switch {
	case before != nil && old.Key != record.Key:
		return broken("it would replace key %q", old.Key)
	case record.Epoch != old.Epoch && record.Epoch != old.Epoch+1 || record.Epoch == 0:
		return broken("its epoch would move from %d to %d", old.Epoch, record.Epoch)
	case record.ForgottenAtEpoch < old.ForgottenAtEpoch || record.ForgottenAtEpoch > record.Epoch:
		return broken("its forgotten floor would move from %d to %d at epoch %d", old.ForgottenAtEpoch, record.ForgottenAtEpoch, record.Epoch)
	case record.Epoch == old.Epoch && record.Owner != old.Owner:
		return broken("its owner would change from %q to %q within epoch %d", old.Owner, record.Owner, record.Epoch)
	case record.LeaseUntil < old.LeaseUntil && c.op != lease.OpRelease:
		return broken("its end would move back from %d to %d by %v", old.LeaseUntil, record.LeaseUntil, c.op)
	}
	return nil
}
