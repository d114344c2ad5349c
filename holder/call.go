package holder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

const (
	// maxTry bounds one try, so that a black hole does not eat the caller's time; a try
	// also gets no more than a third of what is left, and no less than minTry.
	maxTry = 2 * time.Second
	minTry = 50 * time.Millisecond
	// firstPause and maxPause bound the pauses between tries.
	firstPause = 20 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

type service = leasepb.LeaseServiceClient

// answered is a response of any method.
type answered interface {
	GetLeader() *leasepb.Leader
}

func mutate[R interface {
	answered
	GetAnswer() *leasepb.Answer
}](ctx context.Context, c *Client, do func(context.Context, service) (R, error),
) (lease.Answer, error) {
	resp, err := call(ctx, c.conns, wire.Mutates, do)
	if err != nil {
		return lease.Answer{}, err
	}
	answer, err := wire.AnswerFromProto(resp.GetAnswer())
	if err != nil {
		return lease.Answer{}, fmt.Errorf("%w: %w", lease.ErrOutcomeUnknown, err)
	}
	return answer, nil
}

// read sends a linearizable read where a mutation would go, and a stale one to the
// endpoints in their order.
func read[R answered](ctx context.Context, c *Client, consistency lease.Consistency, do func(context.Context, service) (R, error)) (R, error) {
	if consistency == lease.Stale {
		return callAny(ctx, c.conns, func(ctx context.Context, conn grpc.ClientConnInterface) (R, error) {
			return do(ctx, leasepb.NewLeaseServiceClient(conn))
		})
	}
	return call(ctx, c.conns, wire.Reads, do)
}

// call tries do at the leader, or at one endpoint after the other while none is known,
// until there is an answer or ctx ends. Only what is safe to repeat may be called so:
// reads, and mutations that a repetition finds done.
func call[R answered](ctx context.Context, c *conns, effect wire.Effect, do func(context.Context, service) (R, error)) (R, error) {
	var none R
	var unknown error // the last try that may have been done
	for n := 0; ; n++ {
		target, err := c.pick(n)
		if err != nil {
			return none, err
		}
		tryCtx, cancel := context.WithTimeout(ctx, tryTime(ctx))
		resp, failed := do(tryCtx, leasepb.NewLeaseServiceClient(target.conn))
		cancel()
		if failed == nil {
			c.learn(target, wire.LeaderFromProto(resp.GetLeader()))
			return resp, nil
		}
		err = wire.FromCall(failed, effect)
		switch {
		case errors.Is(err, lease.ErrOutcomeUnknown):
			unknown = err
		case !errors.Is(err, lease.ErrUnavailable):
			return none, err
		}
		c.unlearn(target, wire.LeaderOf(failed))
		if !pause(ctx, n) {
			return none, giveUp(ctx, err, unknown)
		}
	}
}

// giveUp returns the error for a call whose context has ended.
func giveUp(ctx context.Context, last, unknown error) error {
	if unknown != nil && !errors.Is(last, lease.ErrOutcomeUnknown) {
		last = fmt.Errorf("%w (an earlier try: %w)", lease.ErrOutcomeUnknown, unknown)
	}
	if errors.Is(last, context.Cause(ctx)) {
		return last
	}
	return fmt.Errorf("%w: %w", last, context.Cause(ctx))
}

// callAny tries do at the endpoints in their order, round by round, until one has
// answered or ctx ends.
func callAny[R any](ctx context.Context, c *conns, do func(context.Context, grpc.ClientConnInterface) (R, error)) (R, error) {
	var none R
	for n := 0; ; n++ {
		for _, addr := range c.endpoints {
			conn, err := c.conn(addr)
			if err != nil {
				return none, err
			}
			tryCtx, cancel := context.WithTimeout(ctx, tryTime(ctx))
			resp, failed := do(tryCtx, conn)
			cancel()
			if failed == nil {
				return resp, nil
			}
			if err = wire.FromCall(failed, wire.Reads); !errors.Is(err, lease.ErrUnavailable) {
				return none, err
			}
			if ctx.Err() != nil {
				return none, giveUp(ctx, err, nil)
			}
		}
		if !pause(ctx, n) {
			return none, fmt.Errorf("%w: no endpoint has answered: %w", lease.ErrUnavailable, context.Cause(ctx))
		}
	}
}

// tryTime returns how long the next try may take.
func tryTime(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return maxTry
	}
	return min(maxTry, max(minTry, time.Until(deadline)/3))
}

// pause waits before try n+1, and reports false if ctx ends first.
func pause(ctx context.Context, n int) bool {
	most := min(maxPause, firstPause<<min(n, 10))
	timer := time.NewTimer(most/2 + rand.N(most/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
