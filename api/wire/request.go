package wire

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// MaxRequestBytes is the size of the largest request that a server reads.
const MaxRequestBytes = 1 << 20

// MaxBundledBytes is the size of the largest request in a bundle: a larger one would hold
// up the others.
const MaxBundledBytes = 16 << 10

// MaxAnswerBytes is the size of the largest answer that a client has to be ready
// for: that of a full BatchRenew, whose every record has all the attributes it may.
const MaxAnswerBytes = 16 << 20

// ErrRequestTooLarge returns the error of a request of more than [MaxRequestBytes].
func ErrRequestTooLarge() error {
	return &lease.ExhaustedError{Resource: "bytes in a request", Limit: MaxRequestBytes}
}

// AcquireToProto returns r as it is on the wire. Only a ttl that is no whole number
// of milliseconds is refused here, since it has no form there; all else is for the
// server to judge.
func AcquireToProto(r lease.AcquireRequest) (*leasepb.AcquireRequest, error) {
	ttl, err := ttlToProto(r.Mutation())
	if err != nil {
		return nil, err
	}
	p := &leasepb.AcquireRequest{Key: []byte(r.Key), Owner: []byte(r.Owner), TtlMs: ttl, Attributes: attributesToProto(r.Attributes)}
	if r.RequestID != "" {
		p.RequestId = []byte(r.RequestID)
	}
	return p, nil
}

// AcquireFromProto returns the mutation that p asks for, within all limits, or an
// [*lease.InvalidError].
func AcquireFromProto(p *leasepb.AcquireRequest) (lease.Mutation, error) {
	m := lease.Mutation{Op: lease.OpAcquire, Key: string(p.GetKey()), Owner: string(p.GetOwner()), RequestID: string(p.GetRequestId())}
	var err error
	if m.TTL, err = lease.TTLOfMillis(p.GetTtlMs()); err != nil {
		return lease.Mutation{}, err
	}
	if n := len(p.GetAttributes()); n > lease.MaxAttributes {
		return lease.Mutation{}, &lease.InvalidError{Field: "attributes", Problem: fmt.Sprintf("has %d pairs", n), Limit: fmt.Sprintf("at most %d pairs", lease.MaxAttributes)}
	}
	if m.Attributes, err = attributesFromProto(p.GetAttributes()); err != nil {
		return lease.Mutation{}, err
	}
	return m, m.Validate()
}

// PollToProto returns p as it is on the wire; as [AcquireToProto]. Of its lengths,
// fractions of a millisecond are cut off.
func PollToProto(p lease.Poll) (*leasepb.AcquireRequest, error) {
	m := p.Mutation
	req, err := AcquireToProto(lease.AcquireRequest{Key: m.Key, Owner: m.Owner, TTL: m.TTL, RequestID: m.RequestID, Attributes: m.Attributes})
	if err != nil {
		return nil, err
	}
	req.WaitMs, req.WaitedMs = p.Wait.Milliseconds(), p.Waited.Milliseconds()
	return req, nil
}

// PollFromProto returns the poll that p is, within all limits, or an
// [*lease.InvalidError]. Its Wait is 0 if p does not wait.
func PollFromProto(p *leasepb.AcquireRequest) (lease.Poll, error) {
	m, err := AcquireFromProto(p)
	if err != nil {
		return lease.Poll{}, err
	}
	if p.GetWaitMs() == 0 && p.GetWaitedMs() == 0 {
		return lease.Poll{Mutation: m}, nil
	}
	poll := lease.Poll{Mutation: m}
	if poll.Wait, err = waitOfMillis("wait", p.GetWaitMs()); err != nil {
		return lease.Poll{}, err
	}
	if poll.Waited, err = waitOfMillis("waited", p.GetWaitedMs()); err != nil {
		return lease.Poll{}, err
	}
	return poll, poll.Validate()
}

// waitOfMillis refuses a length that would wrap; whether it is within the limits, its
// poll says.
func waitOfMillis(field string, ms int64) (time.Duration, error) {
	if ms < 0 || ms > lease.MaxWait.Milliseconds() {
		return 0, &lease.InvalidError{Field: field, Problem: fmt.Sprintf("%d ms is outside", ms), Limit: fmt.Sprintf("0 to %d", lease.MaxWait.Milliseconds())}
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// RenewToProto returns r as it is on the wire; as [AcquireToProto].
func RenewToProto(r lease.RenewRequest) (*leasepb.RenewRequest, error) {
	ttl, err := ttlToProto(r.Mutation())
	if err != nil {
		return nil, err
	}
	return &leasepb.RenewRequest{Key: []byte(r.Key), Owner: []byte(r.Owner), Epoch: r.Epoch, TtlMs: ttl}, nil
}

// RenewFromProto returns the mutation that p asks for, within all limits, or an
// [*lease.InvalidError].
func RenewFromProto(p *leasepb.RenewRequest) (lease.Mutation, error) {
	m := lease.Mutation{Op: lease.OpRenew, Key: string(p.GetKey()), Owner: string(p.GetOwner()), Epoch: p.GetEpoch()}
	var err error
	if m.TTL, err = lease.TTLOfMillis(p.GetTtlMs()); err != nil {
		return lease.Mutation{}, err
	}
	return m, m.Validate()
}

// ReleaseToProto returns r as it is on the wire.
func ReleaseToProto(r lease.ReleaseRequest) *leasepb.ReleaseRequest {
	p := &leasepb.ReleaseRequest{Key: []byte(r.Key), Owner: []byte(r.Owner), Epoch: r.Epoch}
	if r.To != "" {
		p.To = []byte(r.To)
	}
	return p
}

// ReleaseFromProto returns the mutation that p asks for, within all limits, as is the
// owner whom p may name as the next; else an [*lease.InvalidError].
func ReleaseFromProto(p *leasepb.ReleaseRequest) (lease.Mutation, error) {
	r := lease.ReleaseRequest{Key: string(p.GetKey()), Owner: string(p.GetOwner()), Epoch: p.GetEpoch(), To: string(p.GetTo())}
	return r.Mutation(), r.Validate()
}

// ForgetToProto returns r as it is on the wire.
func ForgetToProto(r lease.ForgetRequest) *leasepb.ForgetRequest {
	return &leasepb.ForgetRequest{Key: []byte(r.Key), Owner: []byte(r.Owner), Epoch: r.Epoch}
}

// ForgetFromProto returns the mutation that p asks for, within all limits, or an
// [*lease.InvalidError].
func ForgetFromProto(p *leasepb.ForgetRequest) (lease.Mutation, error) {
	m := lease.Mutation{Op: lease.OpForget, Key: string(p.GetKey()), Owner: string(p.GetOwner()), Epoch: p.GetEpoch()}
	return m, m.Validate()
}

// ttlToProto refuses a ttl with a fraction of a millisecond, with the error that
// validation has for it: cut to the wire's unit it would be another ttl.
func ttlToProto(m lease.Mutation) (int64, error) {
	if m.TTL%time.Millisecond != 0 {
		return 0, m.Validate()
	}
	return m.TTL.Milliseconds(), nil
}
