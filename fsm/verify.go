package fsm

import (
	"errors"
	"fmt"
	"math"

	"github.com/leasenode/leasenode/lease"
	"go.etcd.io/bbolt"
)

// Census is what [FSM.Verify] has found in a state that is right.
type Census struct {
	Digest Digest
	// Now is the cluster clock.
	Now lease.Instant
	// Keys is the number of records, Held of those whose lease is not over at Now.
	Keys, Held uint64
	// HighestEpoch is the highest epoch of all keys, 0 if there are none.
	HighestEpoch uint64
}

// Verify reads the whole state as of one entry and holds it against the rules: each
// record is one that the rules can have made, its history belongs to it, and the
// counts, the latest end and the digest's sum, which are kept incrementally, are those
// of the records. Its error is the first fault, a [*CorruptStateError] or an
// [*InvariantError], or [ErrClosed].
//
// It takes as long as reading everything does, and the state file grows with what is
// applied meanwhile: it is for states that nobody waits for. Memory stays flat.
func (f *FSM) Verify() (Census, error) {
	var census Census
	err := f.read(func(tx *bbolt.Tx, m meta) error {
		v := &verifier{tx: tx, meta: m}
		v.census = Census{Digest: m.digest(), Now: m.now}
		if err := v.verify(); err != nil {
			return fmt.Errorf("verifying the state of log index %d: %w", m.index, err)
		}
		census = v.census
		return nil
	})
	return census, err
}

// verifier counts anew what meta counts.
type verifier struct {
	tx     *bbolt.Tx
	meta   meta
	census Census
	sum    lanes
	buffer []byte
}

func (v *verifier) verify() error {
	if err := bucket(v.tx, recordsBucket).ForEach(v.record); err != nil {
		return err
	}
	for which := range v.meta.references {
		if err := v.index(which); err != nil {
			return err
		}
	}
	switch {
	case v.census.Keys != v.meta.keys:
		return &InvariantError{Problem: fmt.Sprintf("there are %d records, and %d were counted", v.census.Keys, v.meta.keys)}
	case v.sum != v.meta.sum:
		return &InvariantError{Problem: "the records are not those that the digest is of"}
	case v.meta.keys > 0 && v.meta.keys > v.meta.settings.MaxKeys:
		return &InvariantError{Problem: fmt.Sprintf("there are %d records, and may be %d", v.meta.keys, v.meta.settings.MaxKeys)}
	}
	return nil
}

func (v *verifier) record(key, value []byte) error {
	s, err := decodeRecord(string(key), string(value))
	if err != nil {
		return err
	}
	if err := v.meta.admits(s); err != nil {
		if _, ok := errors.AsType[*InvariantError](err); !ok {
			err = &InvariantError{Key: s.record.Key, Problem: err.Error()}
		}
		return err
	}
	if problem := s.contradiction(); problem != "" {
		return &InvariantError{Key: s.record.Key, Problem: problem}
	}
	v.census.Keys++
	v.census.HighestEpoch = max(v.census.HighestEpoch, s.record.Epoch)
	if !s.record.OverAt(v.meta.now) {
		v.census.Held++
	}
	var hash lanes
	hash, v.buffer = recordHash(v.buffer, s.record.Key, value)
	v.sum.add(hash)
	return nil
}

// contradiction returns what the history tells otherwise than the record, "" if
// nothing. What decodeRecord has looked at is not looked at again.
func (s *stored) contradiction() string {
	r, latest := s.record, s.history[len(s.history)-1]
	var extended lease.Instant // when the end of the lease was set last, but for a release
	for _, o := range s.history {
		switch o.op {
		case lease.OpAcquire, lease.OpRenew:
			extended = o.at
		case lease.OpForget:
			if r.ForgottenAtEpoch < o.epoch {
				return fmt.Sprintf("its forgotten floor is %d, and epoch %d was forgotten", r.ForgottenAtEpoch, o.epoch)
			}
		}
	}
	switch {
	case latest.op == lease.OpRelease && r.LeaseUntil != latest.at:
		return fmt.Sprintf("it was released at %d and ends at %d", latest.at, r.LeaseUntil)
	case latest.op != lease.OpRelease && r.LeaseUntil <= latest.at:
		return fmt.Sprintf("it ends at %d, and the %v at %d was granted", r.LeaseUntil, latest.op, latest.at)
	case int64(extended) <= math.MaxInt64-int64(lease.MaxTTL) && r.LeaseUntil > extended.Add(lease.MaxTTL):
		return fmt.Sprintf("it ends at %d, longer than a lease can be after %d", r.LeaseUntil, extended)
	}
	return ""
}

// index holds one index of operations against the records.
func (v *verifier) index(which int) error {
	records, counted := bucket(v.tx, recordsBucket), uint64(0)
	err := bucket(v.tx, indexBucket(which)).ForEach(func(key, value []byte) error {
		references, f := decodeReferences(string(value))
		if f != nil {
			return corruptIndex(key, f)
		}
		counted += uint64(len(references))
		for _, ref := range references {
			if records.Get([]byte(ref.key)) == nil {
				return &InvariantError{Key: ref.key, Problem: fmt.Sprintf("it has an operation at log index %x and no record", key)}
			}
		}
		return nil
	})
	if err == nil && counted != v.meta.references[which] {
		err = &InvariantError{Problem: fmt.Sprintf("there are %d operations in the index of %s, and %d were counted", counted, indexBucket(which), v.meta.references[which])}
	}
	return err
}
