package api

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/wire"
)

// inTurn returns the interceptor that is all of those, the first outermost.
func inTurn(all []grpc.UnaryServerInterceptor) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		for _, intercept := range slices.Backward(all) {
			next := handle
			handle = func(ctx context.Context, req any) (any, error) { return intercept(ctx, req, info, next) }
		}
		return handle(ctx, req)
	}
}

// guard keeps every failure of a call in the form that clients rely on.
type guard struct{ node Node }

// ourServices is how the full names of the methods begin whose errors are ours.
const ourServices = "/leasenode."

// status turns the errors of our services into statuses that name the leader.
func (g guard) status(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	answer, err := handle(ctx, req)
	if err != nil && strings.HasPrefix(info.FullMethod, ourServices) {
		return nil, wire.StatusOf(err, g.node.Consensus.Leader()).Err()
	}
	return answer, err
}

func (g guard) statusStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(service, stream)
	if err != nil && strings.HasPrefix(info.FullMethod, ourServices) {
		return wire.StatusOf(err, g.node.Consensus.Leader()).Err()
	}
	return err
}

// recover turns a panic into an error and a line in the log: whatever a request is
// like, it does not end the node. What the call has done is unknown then, and that
// is what an error without a code means to a client.
func (g guard) recover(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (answer any, err error) {
	defer g.caught(info.FullMethod, &err)
	return handle(ctx, req)
}

func (g guard) recoverStream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
	defer g.caught(info.FullMethod, &err)
	return handle(service, stream)
}

// caught has to be deferred itself.
func (g guard) caught(method string, err *error) {
	if p := recover(); p != nil {
		g.node.Logger.Error("a request made the server panic; this is a bug", "method", method, "panic", p, "stack", string(debug.Stack()))
		*err = fmt.Errorf("%s failed inside node %q: see its log", method, g.node.ID)
	}
}

// giveDeadline bounds calls whose client has not.
func giveDeadline(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, defaultTimeout)
		defer cancel()
	}
	return handle(ctx, req)
}

// observer counts calls and logs those that failed.
type observer struct {
	logger  hclog.Logger
	metrics *metrics
}

func (o observer) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	began := time.Now()
	answer, err := handle(ctx, req)
	took := time.Since(began)
	o.metrics.observe(info.FullMethod, codeName(err), req, took)
	if err != nil && o.logger.IsDebug() {
		o.logger.Debug("request failed", "method", info.FullMethod, "took", took, "error", err)
	}
	return answer, err
}

// stream counts the streams of our services when they end, and not how long they took:
// that is up to their clients.
func (o observer) stream(service any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	err := handle(service, stream)
	if !strings.HasPrefix(info.FullMethod, ourServices) {
		return err
	}
	o.metrics.requests.WithLabelValues(methodName(info.FullMethod), codeName(err)).Inc()
	if err != nil && o.logger.IsDebug() {
		o.logger.Debug("stream ended", "method", info.FullMethod, "error", err)
	}
	return err
}
