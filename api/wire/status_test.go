package wire_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

var leader = wire.Leader{ID: "n2", APIAddr: "127.0.0.1:7202"}

// overTheWire returns err as the client's call fails with it.
func overTheWire(err error) error {
	data, merr := proto.Marshal(wire.StatusOf(err, leader).Proto())
	if merr != nil {
		panic(merr)
	}
	back := wire.StatusOf(nil, wire.Leader{}).Proto()
	if merr := proto.Unmarshal(data, back); merr != nil {
		panic(merr)
	}
	return status.ErrorProto(back)
}

func TestTypedErrorsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := typedErrors().Draw(t, "error")
		failed := overTheWire(fmt.Errorf("while serving: %w", want))
		if got := wire.FromCall(failed, wire.Mutates); !reflect.DeepEqual(want, got) {
			t.Fatalf("sent %#v\ngot  %#v", want, got)
		}
		if !wire.Answered(failed) || wire.LeaderOf(failed) != leader {
			t.Fatalf("%v is not ours, or names no leader", failed)
		}
		if got := wire.FailureFromProto(sent(t, wire.FailureToProto(want)), wire.Mutates); !reflect.DeepEqual(want, got) {
			t.Fatalf("inside an answer: sent %#v\ngot  %#v", want, got)
		}
	})
}

func TestSentinelsComeBackWithTheirText(t *testing.T) {
	for _, c := range []struct {
		err, want error
		effect    wire.Effect
		code      codes.Code
	}{
		{lease.ErrUnavailable, lease.ErrUnavailable, wire.Mutates, codes.Unavailable},
		{lease.ErrUnavailable, lease.ErrUnavailable, wire.Reads, codes.Unavailable},
		{lease.ErrOutcomeUnknown, lease.ErrOutcomeUnknown, wire.Mutates, codes.Unavailable},
		{lease.ErrOutcomeUnknown, lease.ErrUnavailable, wire.Reads, codes.Unavailable},
		{fmt.Errorf("%w: %w", lease.ErrUnavailable, lease.ErrOutcomeUnknown), lease.ErrOutcomeUnknown, wire.Mutates, codes.Unavailable},
		{fmt.Errorf("%w: %w", &lease.HeldError{}, lease.ErrOutcomeUnknown), lease.ErrOutcomeUnknown, wire.Mutates, codes.Unavailable},
		{fmt.Errorf("%w: %w", lease.ErrUnavailable, context.DeadlineExceeded), lease.ErrUnavailable, wire.Mutates, codes.Unavailable},
	} {
		sentErr := fmt.Errorf("acquire %q: %w", "k", c.err)
		failed := overTheWire(sentErr)
		for _, got := range []error{wire.FromCall(failed, c.effect), wire.FailureFromProto(wire.FailureToProto(sentErr), c.effect)} {
			if !errors.Is(got, c.want) || lease.CodeOf(got) != lease.CodeOf(c.want) || got.Error() != sentErr.Error() {
				t.Errorf("sent %v, got %v", sentErr, got)
			}
		}
		if got := status.Code(failed); got != c.code {
			t.Errorf("%v has code %v, want %v", sentErr, got, c.code)
		}
	}
}

func TestEachCodeHasItsStatus(t *testing.T) {
	for err, want := range map[error]codes.Code{
		&lease.HeldError{}:       codes.FailedPrecondition,
		&lease.LostError{}:       codes.Aborted,
		&lease.InvalidError{}:    codes.InvalidArgument,
		&lease.ExhaustedError{}:  codes.ResourceExhausted,
		&lease.NotWaitingError{}: codes.FailedPrecondition,
		lease.ErrUnavailable:     codes.Unavailable,
		lease.ErrOutcomeUnknown:  codes.Unavailable,
		context.Canceled:         codes.Canceled,
		context.DeadlineExceeded: codes.DeadlineExceeded,
		errors.New("a bug"):      codes.Internal,
	} {
		if got := wire.StatusOf(err, wire.Leader{}).Code(); got != want {
			t.Errorf("%v has code %v, want %v", err, got, want)
		}
	}
	if got := wire.StatusOf(nil, leader).Code(); got != codes.OK {
		t.Errorf("success has code %v", got)
	}
}

func TestFailuresWithoutAReasonAreTakenForTheWorst(t *testing.T) {
	stranger, err := status.New(codes.Aborted, "not ours").WithDetails(&leasepb.Leader{Id: "n1"})
	if err != nil {
		t.Fatal(err)
	}
	for _, failed := range []error{
		status.Error(codes.Unavailable, "connection reset"),
		status.Error(codes.Internal, "a bug"),
		status.Error(codes.ResourceExhausted, "from a proxy"),
		stranger.Err(),
		overTheWire(errors.New("a bug")),
		errors.New("no status at all"),
	} {
		if wire.Answered(failed) {
			t.Errorf("%v counts as ours", failed)
		}
		if got := wire.FromCall(failed, wire.Mutates); !errors.Is(got, lease.ErrOutcomeUnknown) || errors.Is(got, lease.ErrUnavailable) || !errors.Is(got, failed) {
			t.Errorf("mutation: %v became %v", failed, got)
		}
		if got := wire.FromCall(failed, wire.Reads); !errors.Is(got, lease.ErrUnavailable) || errors.Is(got, lease.ErrOutcomeUnknown) {
			t.Errorf("read: %v became %v", failed, got)
		}
	}
	for _, f := range []*leasepb.Failure{nil, {}, {Reason: "OF_A_NEWER_SERVER"}, {Reason: "LEASE_HELD"}, {Reason: "LEASE_LOST"}, {Reason: "EXHAUSTED"}, {Reason: "LEASE_LOST", Refusal: &leasepb.Refusal{Record: &leasepb.Record{}, RemainingMs: -1}}} {
		if got := wire.FailureFromProto(f, wire.Mutates); !errors.Is(got, lease.ErrOutcomeUnknown) {
			t.Errorf("%v became %v", f, got)
		}
	}
}

func TestTheEndOfAContextIsFound(t *testing.T) {
	for failed, want := range map[error]error{
		status.Error(codes.Canceled, "gave up"):          context.Canceled,
		status.Error(codes.DeadlineExceeded, "too late"): context.DeadlineExceeded,
		context.DeadlineExceeded:                         context.DeadlineExceeded,
	} {
		for effect, is := range map[wire.Effect]error{wire.Mutates: lease.ErrOutcomeUnknown, wire.Reads: lease.ErrUnavailable} {
			if got := wire.FromCall(failed, effect); !errors.Is(got, want) || !errors.Is(got, is) {
				t.Errorf("%v became %v, without %v or %v", failed, got, want, is)
			}
		}
	}
}

func TestAForwardedFailureStaysAsItIs(t *testing.T) {
	failed := overTheWire(&lease.HeldError{Record: lease.Record{Key: "k", Owner: "o", Epoch: 3}})
	got := wire.StatusOf(failed, wire.Leader{ID: "n9"})
	if !proto.Equal(got.Proto(), status.Convert(failed).Proto()) {
		t.Errorf("sent %v, got %v", failed, got)
	}
}

func TestBytesThatAreNoTextAreStillSent(t *testing.T) {
	failed := overTheWire(&lease.ExhaustedError{Resource: "epochs", Limit: 5, Key: "\xff"})
	var exhausted *lease.ExhaustedError
	if err := wire.FromCall(failed, wire.Mutates); !errors.As(err, &exhausted) || exhausted.Limit != 5 || strings.Contains(err.Error(), "\xff") {
		t.Errorf("got %v", err)
	}
}

func FuzzFromCall(f *testing.F) {
	seed, _ := proto.Marshal(wire.StatusOf(&lease.LostError{Record: lease.Record{Key: "k"}}, leader).Proto())
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		p := wire.StatusOf(nil, wire.Leader{}).Proto()
		if proto.Unmarshal(data, p) != nil || p.GetCode() == 0 {
			return
		}
		if got := wire.FromCall(status.ErrorProto(p), wire.Mutates); lease.CodeOf(got) == "" {
			t.Errorf("%v has no code", got)
		}
	})
}
