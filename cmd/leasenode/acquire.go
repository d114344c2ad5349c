package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/lease"
)

// Between two tries that the cluster could not answer, a waiting acquire pauses for
// pauseMin to pauseMax, at random so that not all who wait come at once.
const (
	pauseMin = 250 * time.Millisecond
	pauseMax = time.Second
)

const defaultTTL = 10 * time.Second

func (a *app) acquireCommand() *cobra.Command {
	try := acquisition{app: a}
	attrs := attributes{}
	cmd := &cobra.Command{
		Use:   "acquire KEY",
		Short: "Become the owner of a key",
		Long: `Become the owner of a key until the lease is over, and print the epoch.

It is granted if nobody owns the key: it was never granted, was released, or its
lease has run out. While it is owned, by you too, the answer is "held" and the exit
code 3; with --wait, wait in line, first come, first served, until it is your turn or
the wait is over, and be told on standard error who has the key. The epoch is your
proof: renew and release need it, and whatever you write to should refuse a lower
one. Keep the lease with "renew" before it ends.

If no answer comes (exit code 5) you may be the owner without knowing. The message
then has a request id: the same command with --request-id gives you the same grant
if there was one. Keep the id to yourself, it can take the grant.`,
		Example: `  leasenode acquire orders/7 --owner worker-1
  leasenode acquire orders/7 --owner worker-2 --ttl 1m --wait 30s
  leasenode acquire orders/7 --owner worker-1 --attr addr=10.0.0.5:8080 --attr version=3`,
		Args: oneKey,
	}
	flags := cmd.Flags()
	flags.StringVar(&try.req.Owner, "owner", "", "who asks, as others will see it")
	flags.DurationVar(&try.req.TTL, "ttl", defaultTTL, "how long the lease lasts unless it is renewed: 100ms to 24h")
	flags.DurationVar(&try.wait, "wait", 0, "how long to wait in line while the key is held")
	flags.Var(attrs, "attr", "something to tell about the owner; can be repeated")
	flags.StringVar(&try.req.RequestID, "request-id", "", "the id of an earlier try, to get the same grant")
	required(cmd, "owner")
	cmd.RunE = a.action(func(ctx context.Context, args []string) error {
		try.req.Key, try.req.Attributes = args[0], attrs
		return try.run(ctx)
	})
	return cmd
}

// required marks flags without which a command cannot run.
func required(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is not defined: a mistake in this program
		}
	}
}

// acquisition is one run of the acquire command.
type acquisition struct {
	app  *app
	req  lease.AcquireRequest
	wait time.Duration

	idIsOurs bool // the request id was made here
}

func (q *acquisition) run(ctx context.Context) error {
	if q.wait < 0 {
		return usagef("--wait is %v: it cannot be negative", q.wait)
	}
	if err := q.req.Mutation().Validate(); err != nil {
		return err
	}
	if q.req.RequestID == "" {
		q.req.RequestID, q.idIsOurs = rand.Text(), true
	}
	return q.app.withCluster(func(c cluster) error {
		answer, err := q.poll(ctx, c)
		if errors.Is(err, lease.ErrOutcomeUnknown) {
			if q.wait > 0 && ctx.Err() != nil {
				err = &givenUpError{key: q.req.Key, cause: context.Cause(ctx), err: err}
			}
			return &attemptError{requestID: q.req.RequestID, err: err}
		}
		if lease.CodeOf(err) == lease.CodeHeld && q.wait == 0 {
			return fmt.Errorf("%w (--wait 1m does so for a minute)", err)
		}
		if err != nil {
			return err
		}
		return q.app.show(recordOf(answer.Record, answer.Remaining), func(w io.Writer) { q.app.granted(w, answer, q.req.TTL) })
	})
}

// givenUpError says that a wait was ended by who asked for it. The line is left then, but
// the grant may have been on its way.
type givenUpError struct {
	key   string
	cause error
	err   error
}

func (e *givenUpError) Error() string {
	return fmt.Sprintf("%v while waiting for %q, which may have been granted in that instant", e.cause, e.key)
}

func (e *givenUpError) Unwrap() error { return e.err }

// poll tries until the key is granted, the wait is over, or trying again is of no
// use. Every try has the same request id, so an unanswered one can do no harm.
func (q *acquisition) poll(ctx context.Context, c cluster) (lease.Answer, error) {
	end := time.Now().Add(q.wait)
	ctx = lease.OnWaiting(ctx, func(held lease.HeldError) {
		fmt.Fprintf(q.app.stderr, "waiting: %q is %s\n", held.Record.Key, inTheWay(held))
	})
	for {
		answer, err := q.try(ctx, c, time.Until(end))
		if err == nil || ctx.Err() != nil || !time.Now().Before(end) || !q.again(err) {
			return answer, err
		}
		select {
		case <-ctx.Done():
			return answer, err
		case <-time.After(min(pause(err), time.Until(end))):
		}
	}
}

// try asks once, and waits in line for as long as one call may, left at most.
func (q *acquisition) try(ctx context.Context, c cluster, left time.Duration) (lease.Answer, error) {
	req := q.req
	req.Wait = min(max(left, 0), lease.MaxWait)
	ctx, cancel := q.app.within(ctx, req.Wait)
	defer cancel()
	answer, err := c.Acquire(ctx, req)
	return answer, settled(err)
}

// again reports whether a try that ended with err can be followed by another.
func (q *acquisition) again(err error) bool {
	switch code := lease.CodeOf(err); {
	case code == lease.CodeHeld:
		return true
	case code == lease.CodeLost && q.idIsOurs:
		// An earlier try was granted, unheard, and that lease is over. The attempt
		// that the id names has ended with it; waiting goes on with another.
		q.req.RequestID = rand.Text()
		return true
	default:
		return code == lease.CodeUnavailable || code == lease.CodeOutcomeUnknown
	}
}

// pause returns when to try again after a try to acquire that ended with err: at once
// if it has waited in line.
func pause(err error) time.Duration {
	if lease.CodeOf(err) == lease.CodeHeld {
		return 0
	}
	return pauseMin + mathrand.N(pauseMax-pauseMin)
}

// granted tells about a grant and what to do with it.
func (a *app) granted(w io.Writer, answer lease.Answer, ttl time.Duration) {
	r := answer.Record
	fmt.Fprintf(w, "%s is yours: epoch %d, %s left\n\n", cell(r.Key), r.Epoch, length(answer.Remaining))
	fmt.Fprintf(w, "  keep it     %s\n", a.suggest("renew", r, "--ttl", brief(ttl)))
	fmt.Fprintf(w, "  give it up  %s\n", a.suggest("release", r))
}
