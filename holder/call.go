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
	// firstPause and maxPause bound the pauses between tries. A leader whose process ends
	// is replaced within tens of milliseconds, so the first, quickTries of them, are no
	// longer than quickPause.
	firstPause = 5 * time.Millisecond
	quickPause = 10 * time.Millisecond
	quickTries = 6
	maxPause   = 500 * time.Millisecond
)

type service = leasepb.LeaseServiceClient

// answered is a response of any method.
type answered interface {
	GetLeader() *leasepb.Leader
}

// attempt is one call of a store, which may take several tries.
type attempt[R answered] struct {
	// subject says in errors what was asked for.
	subject fmt.Stringer
	effect  wire.Effect
	// do makes one try.
	do func(context.Context, service) (R, error)
	// anew is asked, when a refusal follows a try that may have been done, whether do
	// now makes another attempt, which goes on in its place. May be nil.
	anew func(refusal error) bool
}

func subjectOf(op lease.Op, key string) wire.Subject {
	return wire.Subject{What: op.String(), Key: key}
}

// malformed returns the error for an answer that could not be read, nil for nil.
func (a attempt[R]) malformed(err error) error {
	switch {
	case err == nil:
		return nil
	case a.effect == wire.Mutates:
		return fmt.Errorf("%s: %w: %w", a.subject, lease.ErrOutcomeUnknown, err)
	default:
		return fmt.Errorf("%s: %w: %w", a.subject, lease.ErrUnavailable, err)
	}
}

// explain returns what a failed try at addr was. The answers of servers say
// themselves what they are about.
func (a attempt[R]) explain(addr string, failed error) error {
	err := wire.FromCall(failed, a.effect)
	if wire.Answered(failed) || lease.CodeOf(failed) != "" {
		return err
	}
	return fmt.Errorf("%s at %s: %w", a.subject, addr, err)
}

func mutate[R interface {
	answered
	GetAnswer() *leasepb.Answer
}](ctx context.Context, c *Client, a attempt[R],
) (lease.Answer, error) {
	a.effect = wire.Mutates
	resp, err := call(ctx, c.conns, a)
	if err != nil {
		return lease.Answer{}, err
	}
	answer, err := wire.AnswerFromProto(resp.GetAnswer())
	return answer, a.malformed(err)
}

// read sends a linearizable read where a mutation would go, and a stale one to the
// endpoints in their order.
func read[R answered](ctx context.Context, c *Client, consistency lease.Consistency, a attempt[R]) (R, error) {
	a.effect = wire.Reads
	if consistency != lease.Stale {
		return call(ctx, c.conns, a)
	}
	resp, err := callAny(ctx, c.conns, func(ctx context.Context, conn grpc.ClientConnInterface) (R, error) {
		return a.do(ctx, leasepb.NewLeaseServiceClient(conn))
	})
	if errors.Is(err, lease.ErrUnavailable) {
		err = fmt.Errorf("%s: %w", a.subject, err)
	}
	return resp, err
}

// call tries a at the leader, or at one endpoint after the other while none is known,
// until there is an answer or ctx ends. Only what is safe to repeat may be called so:
// reads, and mutations that a repetition finds done.
func call[R answered](ctx context.Context, c *conns, a attempt[R]) (R, error) {
	var none R
	var last telling
	var unknown error // of the latest try that may have been done
	for n := 0; ; n++ {
		target, err := c.pick()
		if err != nil {
			return none, giveUp(ctx, err, unknown)
		}
		tryCtx, cancel := context.WithTimeout(ctx, tryTime(ctx))
		noteSend(ctx)
		resp, failed := a.do(tryCtx, leasepb.NewLeaseServiceClient(target.conn))
		cancel()
		if failed == nil {
			c.learn(target, wire.LeaderFromProto(resp.GetLeader()))
			return resp, nil
		}
		err = a.explain(target.addr, failed)
		switch {
		case errors.Is(err, lease.ErrOutcomeUnknown):
			unknown = err
		case errors.Is(err, lease.ErrUnavailable):
		case unknown != nil && a.anew != nil && a.anew(err):
		default:
			c.learn(target, wire.LeaderOf(failed))
			return none, err
		}
		if ctx.Err() == nil { // else the node was not given its time
			c.unlearn(target, failed)
		}
		last.take(ctx, failed, err)
		if !pause(ctx, n) {
			return none, giveUp(ctx, last.err, unknown)
		}
	}
}

// telling is the error, of those of several tries, that tells most: the latest, but
// rather what a node has answered than that one could not be reached, and nothing of a
// try that was cut off.
type telling struct {
	err      error
	answered bool
}

// take takes in err, which explains how a try failed.
func (t *telling) take(ctx context.Context, failed, err error) {
	answered := wire.Answered(failed)
	if t.err == nil || ctx.Err() == nil && (answered || !t.answered) {
		t.err, t.answered = err, answered
	}
}

// giveUp returns the error for a call that ends without an answer. If any try may have
// been done, [lease.ErrUnavailable] is nowhere in its chain. If ctx has ended, its error
// and its cause are.
func giveUp(ctx context.Context, last, unknown error) error {
	if unknown != nil && !errors.Is(last, lease.ErrOutcomeUnknown) {
		last = fmt.Errorf("%w; and after that: %v", unknown, last)
	}
	ended := endOf(ctx)
	if ended == nil {
		return last
	}
	if before, ok := errors.AsType[*givenUpError](last); ok && errors.Is(before.ended, ctx.Err()) && errors.Is(before.ended, context.Cause(ctx)) {
		return last
	}
	return &givenUpError{last: last, ended: ended}
}

// givenUpError is the error of the last try of a call, and why no other followed.
type givenUpError struct{ last, ended error }

func (e *givenUpError) Error() string   { return e.last.Error() + "; given up: " + e.ended.Error() }
func (e *givenUpError) Unwrap() []error { return []error{e.last, e.ended} }

// endOf returns why ctx has ended, which is ctx's own error, too; nil if it has not.
func endOf(ctx context.Context) error {
	switch cause := context.Cause(ctx); {
	case cause == nil || errors.Is(cause, ctx.Err()):
		return cause
	default:
		return &endError{cause: cause, is: ctx.Err()}
	}
}

// endError is the cause of a context's end, and stands for its error.
type endError struct{ cause, is error }

func (e *endError) Error() string   { return e.cause.Error() }
func (e *endError) Unwrap() []error { return []error{e.cause, e.is} }

// callAny tries do at the endpoints in their order, round by round, until one has
// answered or ctx ends.
func callAny[R any](ctx context.Context, c *conns, do func(context.Context, grpc.ClientConnInterface) (R, error)) (R, error) {
	var none R
	var last telling
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
			err = wire.FromCall(failed, wire.Reads)
			if !errors.Is(err, lease.ErrUnavailable) {
				return none, err
			}
			last.take(ctx, failed, fmt.Errorf("no answer from any endpoint, the latest asked is %s: %w", addr, err))
			if ctx.Err() != nil {
				return none, giveUp(ctx, last.err, nil)
			}
		}
		if !pause(ctx, n) {
			return none, giveUp(ctx, last.err, nil)
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

// pause waits before try n+1, with jitter so that clients which failed together do not
// come back together, and reports false if ctx ends first. It leaves minTry for a last
// try, and waits for the end where there is not even that: a try that cannot be
// answered any more would only make its outcome unknown.
func pause(ctx context.Context, n int) bool {
	most := longestPause(n)
	wait := most/2 + rand.N(most/2)
	if deadline, ok := ctx.Deadline(); ok {
		switch left := time.Until(deadline) - minTry; {
		case left < firstPause:
			<-ctx.Done()
			return false
		case left < wait:
			wait = left
		}
	}
	return sleep(ctx, wait)
}

// longestPause returns the most that is waited before try n+1: twice as much as before
// the last one, but for those that are quick.
func longestPause(n int) time.Duration {
	if n < quickTries {
		return min(quickPause, firstPause<<n)
	}
	return min(maxPause, quickPause<<min(n-quickTries+1, 10))
}
