package wire

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// Leader is the node to talk to; the zero value if none is known.
type Leader struct {
	ID      string
	APIAddr string
}

// LeaderToProto returns l as it is on the wire, nil if none is known.
func LeaderToProto(l Leader) *leasepb.Leader {
	if l == (Leader{}) {
		return nil
	}
	return &leasepb.Leader{Id: l.ID, ApiAddr: l.APIAddr}
}

// LeaderFromProto is the inverse of [LeaderToProto].
func LeaderFromProto(p *leasepb.Leader) Leader {
	return Leader{ID: p.GetId(), APIAddr: p.GetApiAddr()}
}

// MutationAnswerToProto returns the answer to a mutation: what remains is rounded
// down, because the holder will count on having it.
func MutationAnswerToProto(a lease.Answer) *leasepb.Answer {
	return &leasepb.Answer{Record: RecordToProto(a.Record), NowMs: a.Now.Millis(), RemainingMs: millisDown(a.Remaining), Changed: a.Changed}
}

// ReadAnswerToProto returns the answer to a read: what remains is rounded up, so
// that 0 means free.
func ReadAnswerToProto(a lease.Answer) *leasepb.Answer {
	return &leasepb.Answer{Record: RecordToProto(a.Record), NowMs: a.Now.Millis(), RemainingMs: millisUp(a.Remaining), Changed: a.Changed}
}

// AnswerFromProto is the inverse of both. An answer that no server of ours can give
// (no record, numbers that would wrap) is an error without a code.
func AnswerFromProto(p *leasepb.Answer) (lease.Answer, error) {
	record, err := RecordFromProto(p.GetRecord())
	if err != nil {
		return lease.Answer{}, fmt.Errorf("malformed answer: %w", err)
	}
	now, err := instantFromProto("now_ms", p.GetNowMs())
	if err != nil {
		return lease.Answer{}, fmt.Errorf("malformed answer: %w", err)
	}
	remaining, err := remainingFromProto(p.GetRemainingMs())
	if err != nil {
		return lease.Answer{}, fmt.Errorf("malformed answer: %w", err)
	}
	return lease.Answer{Record: record, Now: now, Remaining: remaining, Changed: p.GetChanged()}, nil
}

// refusal is what a HeldError or a LostError has.
type refusal struct {
	record    lease.Record
	remaining time.Duration
	place     int // of a HeldError
}

func (r refusal) toProto() *leasepb.Refusal {
	return &leasepb.Refusal{Record: RecordToProto(r.record), RemainingMs: millisUp(r.remaining), Place: int64(r.place)}
}

func refusalFromProto(p *leasepb.Refusal) (refusal, error) {
	record, err := RecordFromProto(p.GetRecord())
	if err != nil {
		return refusal{}, fmt.Errorf("malformed refusal: %w", err)
	}
	remaining, err := remainingFromProto(p.GetRemainingMs())
	if err != nil {
		return refusal{}, fmt.Errorf("malformed refusal: %w", err)
	}
	// A place that no line has is none: it is for people only.
	place := int(min(max(p.GetPlace(), 0), lease.MaxWaitersPerKey))
	return refusal{record: record, remaining: remaining, place: place}, nil
}
