package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
)

// The keys of raft's that belong together.
const (
	keyVoteTerm      = "LastVoteTerm"
	keyVoteCandidate = "LastVoteCand"
	keyCurrentTerm   = "CurrentTerm"
)

// ballot is raft's stable store. raft writes a vote as two values, its term and then
// its candidate; if it stops in between, the term has the candidate of an earlier
// vote, and the node may vote for that one now, and so twice in one term. So the term
// is kept in memory until the candidate comes, and both are written at once, in one
// value; until then the earlier vote is what is read. All else is written at once:
// the current term, held back, would go back after a crash.
//
// Every write is durable when it returns nil. Writes go on while the disk is full:
// they are short. An absent key is an error that says "not found", as raft expects.
// It is safe for concurrent use.
type ballot struct {
	journal *journal

	mu sync.Mutex
	// pending is the term of a vote whose candidate has not come, nil if there is
	// none.
	pending []byte
}

// Set writes a value. The candidate of a vote is refused without its term.
func (b *ballot) Set(key, value []byte) error {
	if len(key) == 0 || len(key) > maxStableBytes || len(value) > maxStableBytes {
		return fmt.Errorf("a key of %d and a value of %d bytes: both may have %d", len(key), len(value), maxStableBytes)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.journal.latch.failure(); err != nil {
		return err
	}
	switch string(key) {
	case keyVoteTerm:
		b.pending = append([]byte{}, value...)
		return nil
	case keyVoteCandidate:
		if b.pending == nil {
			return errors.New("the candidate of a vote came without its term")
		}
		term := b.pending
		b.pending = nil
		return b.write(func(h *head) *head { return h.with(keyVoteTerm, term).with(keyVoteCandidate, value) })
	default:
		return b.write(func(h *head) *head { return h.with(string(key), value) })
	}
}

func (b *ballot) write(change func(*head) *head) error {
	j := b.journal
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.write(Change{}, change(j.head()))
}

// Get returns a copy of the value of key.
func (b *ballot) Get(key []byte) ([]byte, error) {
	value, ok := b.journal.head().stable[string(key)]
	if !ok {
		return nil, errNotFound
	}
	return append([]byte{}, value...), nil
}

// SetUint64 is Set of a number.
func (b *ballot) SetUint64(key []byte, value uint64) error {
	return b.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 is Get of a number.
func (b *ballot) GetUint64(key []byte) (uint64, error) {
	value, err := b.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("the value of %q is no number", key)
	}
	return binary.BigEndian.Uint64(value), nil
}
