package wire

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// Effect says what kind of call failed, which decides what a failure that explains
// nothing has to be taken for.
type Effect uint8

const (
	// Reads changes nothing: such a failure is [lease.ErrUnavailable].
	Reads Effect = iota
	// Mutates may have been done: such a failure is [lease.ErrOutcomeUnknown].
	Mutates
)

func (e Effect) unexplained() error {
	if e == Mutates {
		return lease.ErrOutcomeUnknown
	}
	return lease.ErrUnavailable
}

// Names in the metadata of a failure.
const (
	fieldName    = "field"
	problemName  = "problem"
	limitName    = "limit"
	resourceName = "resource"
	keyName      = "key"
	ownerName    = "owner"
	clusterName  = "cluster_id"
	indexName    = "index"
	oldestName   = "oldest"
)

// FailureToProto returns err as it is inside a successful answer. An error that is
// none of package lease has no reason there. Where a chain has more than one, an
// unknown outcome wins: what caused it does not make it known.
func FailureToProto(err error) *leasepb.Failure {
	f := &leasepb.Failure{Message: printable(err.Error())}
	var (
		held      *lease.HeldError
		lost      *lease.LostError
		invalid   *lease.InvalidError
		exhausted *lease.ExhaustedError
		waits     *lease.NotWaitingError
		compacted *lease.CompactedError
		slow      *lease.TooSlowError
	)
	switch {
	case errors.Is(err, lease.ErrOutcomeUnknown):
		f.Reason = string(lease.CodeOutcomeUnknown)
	case errors.As(err, &held):
		f.Reason = string(lease.CodeHeld)
		f.Refusal = refusal{record: held.Record, remaining: held.Remaining, place: held.Place}.toProto()
	case errors.As(err, &lost):
		f.Reason = string(lease.CodeLost)
		f.Refusal = refusal{record: lost.Record, remaining: lost.Remaining}.toProto()
	case errors.As(err, &invalid):
		f.Reason = string(lease.CodeInvalid)
		f.Metadata = map[string]string{fieldName: printable(invalid.Field), problemName: printable(invalid.Problem), limitName: printable(invalid.Limit)}
	case errors.As(err, &exhausted):
		f.Reason = string(lease.CodeExhausted)
		f.Metadata = map[string]string{resourceName: printable(exhausted.Resource), limitName: strconv.FormatUint(exhausted.Limit, 10)}
		if exhausted.Key != "" {
			f.Metadata[keyName] = printable(exhausted.Key)
		}
	case errors.As(err, &waits):
		f.Reason = string(lease.CodeNotWaiting)
		f.Metadata = map[string]string{keyName: printable(waits.Key), ownerName: printable(waits.Owner)}
	case errors.As(err, &compacted):
		f.Reason = string(lease.CodeCompacted)
		f.Metadata = positionToMetadata(compacted.After)
		f.Metadata[oldestName] = strconv.FormatUint(compacted.Oldest.Index, 10)
	case errors.As(err, &slow):
		f.Reason = string(lease.CodeWatchTooSlow)
		f.Metadata = positionToMetadata(slow.Last)
	case errors.Is(err, lease.ErrUnavailable):
		f.Reason = string(lease.CodeUnavailable)
	}
	return f
}

// FailureFromProto returns the error that f stands for, in a call of that effect. A
// failure that cannot be understood (no reason, one of a newer server, a detail
// missing) is taken for the worst: see [Effect]. It is never nil.
func FailureFromProto(f *leasepb.Failure, effect Effect) error {
	switch lease.Code(f.GetReason()) {
	case lease.CodeHeld:
		if r, err := refusalFromProto(f.GetRefusal()); err == nil {
			return &lease.HeldError{Record: r.record, Remaining: r.remaining, Place: r.place}
		}
	case lease.CodeLost:
		if r, err := refusalFromProto(f.GetRefusal()); err == nil {
			return &lease.LostError{Record: r.record, Remaining: r.remaining}
		}
	case lease.CodeInvalid:
		m := f.GetMetadata()
		return &lease.InvalidError{Field: m[fieldName], Problem: m[problemName], Limit: m[limitName]}
	case lease.CodeExhausted:
		m := f.GetMetadata()
		if limit, err := strconv.ParseUint(m[limitName], 10, 64); err == nil {
			return &lease.ExhaustedError{Resource: m[resourceName], Limit: limit, Key: m[keyName]}
		}
	case lease.CodeNotWaiting:
		m := f.GetMetadata()
		return &lease.NotWaitingError{Key: m[keyName], Owner: m[ownerName]}
	case lease.CodeCompacted:
		after, ok := positionFromMetadata(f.GetMetadata())
		if oldest, err := strconv.ParseUint(f.GetMetadata()[oldestName], 10, 64); ok && err == nil {
			return &lease.CompactedError{After: after, Oldest: lease.Position{ClusterID: after.ClusterID, Index: oldest}}
		}
	case lease.CodeWatchTooSlow:
		if last, ok := positionFromMetadata(f.GetMetadata()); ok {
			return &lease.TooSlowError{Last: last}
		}
	case lease.CodeUnavailable:
		return &toldError{text: f.GetMessage(), is: lease.ErrUnavailable}
	case lease.CodeOutcomeUnknown:
		return &toldError{text: f.GetMessage(), is: effect.unexplained()}
	}
	return fmt.Errorf("%s %q: %w", f.GetReason(), f.GetMessage(), effect.unexplained())
}

func positionToMetadata(p lease.Position) map[string]string {
	return map[string]string{clusterName: printable(p.ClusterID), indexName: strconv.FormatUint(p.Index, 10)}
}

func positionFromMetadata(m map[string]string) (p lease.Position, ok bool) {
	index, err := strconv.ParseUint(m[indexName], 10, 64)
	return lease.Position{ClusterID: m[clusterName], Index: index}, err == nil
}

// toldError is an error whose text comes from the other side.
type toldError struct {
	text string
	is   error
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.is }

// printable makes s fit for a proto string: bytes that are no UTF-8 would make the
// whole failure impossible to send.
func printable(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
