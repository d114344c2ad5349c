package wire

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// Domain is the domain of the ErrorInfo in every failure of ours.
const Domain = "leasenode"

// StatusOf returns the status that err is answered with, naming leader if one is
// known. An error of package lease has an ErrorInfo with its code as the reason. An
// error that is a status with such an ErrorInfo already, as one that another node
// has answered a forwarded call with, stays as it is. Any other has no ErrorInfo:
// the end of a context keeps its gRPC code, the rest is INTERNAL.
func StatusOf(err error, leader Leader) *status.Status {
	if err == nil {
		return status.New(codes.OK, "")
	}
	if st, ok := status.FromError(err); ok && infoOf(st) != nil {
		return st
	}
	f := FailureToProto(err)
	var details []protoadapt.MessageV1
	if f.GetReason() != "" {
		details = append(details, &errdetails.ErrorInfo{Reason: f.GetReason(), Domain: Domain, Metadata: f.GetMetadata()})
	}
	if f.GetRefusal() != nil {
		details = append(details, f.GetRefusal())
	}
	if l := LeaderToProto(leader); l != nil {
		details = append(details, l)
	}
	st := status.New(grpcCode(err, lease.Code(f.GetReason())), f.GetMessage())
	detailed, err := st.WithDetails(details...)
	if err != nil { // only a name of the leader that is no UTF-8 could do that
		return st
	}
	return detailed
}

func grpcCode(err error, reason lease.Code) codes.Code {
	switch reason {
	case lease.CodeHeld, lease.CodeNotWaiting:
		return codes.FailedPrecondition
	case lease.CodeLost, lease.CodeWatchTooSlow:
		return codes.Aborted
	case lease.CodeCompacted:
		return codes.OutOfRange
	case lease.CodeUnavailable, lease.CodeOutcomeUnknown:
		return codes.Unavailable
	case lease.CodeInvalid:
		return codes.InvalidArgument
	case lease.CodeExhausted:
		return codes.ResourceExhausted
	}
	switch {
	case errors.Is(err, context.Canceled):
		return codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	default:
		return codes.Internal
	}
}

// FromCall returns the error of package lease that the failure of a gRPC call, of
// that effect, stands for; nil for nil. One that has a code of package lease already,
// as a request that was too large to be sent, stays as it is. What a failure without our ErrorInfo is
// taken for, its [Effect] says, except that a call whose request certainly never
// left (see [DialOptions]) is [lease.ErrUnavailable] whatever its effect. Such an
// error keeps its cause: errors.Is finds context.Canceled and
// context.DeadlineExceeded in it.
func FromCall(err error, effect Effect) error {
	if err == nil || lease.CodeOf(err) != "" {
		return err
	}
	st := status.Convert(err)
	if info := infoOf(st); info != nil {
		f := &leasepb.Failure{Reason: info.GetReason(), Message: st.Message(), Metadata: info.GetMetadata()}
		f.Refusal, _ = detailOf[*leasepb.Refusal](st)
		return FailureFromProto(f, effect)
	}
	is := effect.unexplained()
	if neverLeft(err) {
		is = lease.ErrUnavailable
	}
	causes := []error{is, err}
	if cause := contextError(st); cause != nil {
		causes = append(causes, cause)
	}
	return &callError{text: callText(is, effect, st.Message()), causes: causes}
}

func contextError(st *status.Status) error {
	switch st.Code() {
	case codes.Canceled:
		return context.Canceled
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Answered reports whether err, as it came from a call, is the answer of a server
// of ours, and not a failure of the way there.
func Answered(err error) bool {
	st, ok := status.FromError(err)
	return ok && infoOf(st) != nil
}

// LeaderOf returns the leader that the failure of a call names; the zero value if it
// names none.
func LeaderOf(err error) Leader {
	p, _ := detailOf[*leasepb.Leader](status.Convert(err))
	return LeaderFromProto(p)
}

func infoOf(st *status.Status) *errdetails.ErrorInfo {
	info, ok := detailOf[*errdetails.ErrorInfo](st)
	if !ok || info.GetDomain() != Domain {
		return nil
	}
	return info
}

func detailOf[M any](st *status.Status) (detail M, ok bool) {
	for _, d := range st.Details() {
		if m, is := d.(M); is {
			return m, true
		}
	}
	return detail, false
}
