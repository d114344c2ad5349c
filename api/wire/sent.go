package wire

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// maxHeaderBytes holds the largest refusal: a record with all the attributes it may
// have, in a trailer, in base64.
const maxHeaderBytes = 64 << 10

// DialOptions returns what every connection to a server of ours needs: answers of
// up to [MaxAnswerBytes], refusals in full, no retries but ours (gRPC's own can not
// tell what is safe), a refusal of requests of more than [MaxRequestBytes], and a mark
// on the failure of each call whose request certainly never left, which [FromCall]
// looks for. Without the mark a failed mutation is an unknown outcome.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithStatsHandler(sendWatch{}),
		grpc.WithChainUnaryInterceptor(markUnsent),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxAnswerBytes)),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
	}
}

// sendNote is kept in the context of one call.
type sendNote struct {
	// left is set once any part of the request, in any attempt of gRPC's, was handed
	// to a connection. From there on nobody here can tell how far it went.
	left atomic.Bool
}

type sendNoteKey struct{}

// markUnsent begins a note for the call, and marks its failure if nothing left. A
// request that no server would read is refused here: it need not be sent to be told.
func markUnsent(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if m, ok := req.(proto.Message); ok && proto.Size(m) > MaxRequestBytes {
		return ErrRequestTooLarge()
	}
	note := &sendNote{}
	err := invoke(context.WithValue(ctx, sendNoteKey{}, note), method, req, reply, conn, opts...)
	if err != nil && !note.left.Load() {
		return &unsentError{err: err}
	}
	return err
}

// unsentError marks the failure of a call whose request never left.
type unsentError struct{ err error }

func (e *unsentError) Error() string              { return e.err.Error() }
func (e *unsentError) Unwrap() error              { return e.err }
func (e *unsentError) GRPCStatus() *status.Status { return status.Convert(e.err) }

func neverLeft(err error) bool {
	var unsent *unsentError
	return errors.As(err, &unsent)
}

// sendWatch is the [stats.Handler] that fills the notes.
type sendWatch struct{}

func (sendWatch) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

func (sendWatch) HandleRPC(ctx context.Context, event stats.RPCStats) {
	switch event.(type) {
	case *stats.OutHeader, *stats.OutPayload:
		if note, ok := ctx.Value(sendNoteKey{}).(*sendNote); ok {
			note.left.Store(true)
		}
	}
}

func (sendWatch) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

func (sendWatch) HandleConn(context.Context, stats.ConnStats) {}

// Unsent returns err, of a call, with the mark that its request certainly never left.
func Unsent(err error) error { return &unsentError{err: err} }
