package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/lease"
)

// claim is what an owner says to prove that a lease is its own.
type claim struct {
	owner string
	epoch uint64
}

func (c *claim) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.owner, "owner", "", "the owner that acquired the key")
	cmd.Flags().Uint64Var(&c.epoch, "epoch", 0, "the epoch that the acquire was answered with")
	required(cmd, "owner", "epoch")
}

// explain says of an err that refuses c, while the key is held, in what c differs from
// what is held.
func (c *claim) explain(err error) error {
	lost, ok := errors.AsType[*lease.LostError](err)
	if !ok || lost.Remaining == 0 {
		return err
	}
	r := lost.Record
	held := fmt.Sprintf("%q is held by %q at epoch %d", r.Key, r.Owner, r.Epoch)
	switch {
	case c.epoch > r.Epoch:
		return &claimError{held + fmt.Sprintf("; epoch %d was never granted: look at --epoch", c.epoch), err}
	case c.epoch == r.Epoch && c.owner != r.Owner:
		return &claimError{held + fmt.Sprintf(", and not by %q: look at --owner", c.owner), err}
	default:
		return &claimError{held + fmt.Sprintf("; the lease of epoch %d is over: stop, and acquire again", c.epoch), err}
	}
}

// claimError is a refusal in other words.
type claimError struct {
	text    string
	refusal error
}

func (e *claimError) Error() string { return e.text }
func (e *claimError) Unwrap() error { return e.refusal }

func (a *app) renewCommand() *cobra.Command {
	var mine claim
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "renew KEY",
		Short: "Keep a key that you own",
		Long: `Move the end of the lease to --ttl from now, if that is later. The epoch stays.

If the lease is over, or is not yours, the answer is "lost" and the exit code 4: stop
what you do for the key, and acquire it again. A renew can be repeated safely.`,
		Example: `  leasenode renew orders/7 --owner worker-1 --epoch 1 --ttl 1m`,
		Args:    oneKey,
	}
	mine.define(cmd)
	cmd.Flags().DurationVar(&ttl, "ttl", defaultTTL, "how long the lease lasts from now: 100ms to 24h")
	cmd.RunE = a.action(func(ctx context.Context, args []string) error {
		req := lease.RenewRequest{Key: args[0], Owner: mine.owner, Epoch: mine.epoch, TTL: ttl}
		return mine.explain(mutate(ctx, a, mutation[lease.RenewRequest]{req, cluster.Renew, func(w io.Writer, answer lease.Answer) {
			fmt.Fprintf(w, "%s is still yours: epoch %d, %s left\n", cell(req.Key), answer.Record.Epoch, length(answer.Remaining))
		}}))
	})
	return cmd
}

func (a *app) releaseCommand() *cobra.Command {
	var mine claim
	var to string
	cmd := &cobra.Command{
		Use:   "release KEY",
		Short: "Give up a key that you own",
		Long: `End the lease now, so that somebody else can acquire the key. Whoever is first in line
for it gets it in the same instant; with --to, the named owner, out of turn. If that
one does not wait for the key now, the answer is "not waiting", the exit code 1, and
nothing is done: the lease goes on.

Releasing your own finished lease again is no error. Once the key was granted to
somebody else, the answer is "lost" and the exit code 4, and nothing changes.`,
		Example: `  leasenode release orders/7 --owner worker-1 --epoch 1
  leasenode release orders/7 --owner worker-1 --epoch 1 --to worker-2`,
		Args: oneKey,
	}
	mine.define(cmd)
	cmd.Flags().StringVar(&to, "to", "", "the waiting owner that gets the key; whoever is first in line if not given")
	cmd.RunE = a.action(func(ctx context.Context, args []string) error {
		req := lease.ReleaseRequest{Key: args[0], Owner: mine.owner, Epoch: mine.epoch, To: to}
		if to == "" && cmd.Flags().Changed("to") {
			return usagef("--to is empty: it must be 1 to %d bytes, or left out for whoever is first in line", lease.MaxOwnerBytes)
		}
		if err := req.Validate(); err != nil {
			return err
		}
		return mine.explain(mutate(ctx, a, mutation[lease.ReleaseRequest]{req, cluster.Release, func(w io.Writer, answer lease.Answer) {
			if answer.Changed && to != "" {
				fmt.Fprintf(w, "%s is handed over to %s: epoch %d was released\n", cell(req.Key), cell(to), req.Epoch)
			} else if answer.Changed {
				fmt.Fprintf(w, "%s is given back: epoch %d was released\n", cell(req.Key), req.Epoch)
			} else {
				fmt.Fprintf(w, "%s was free already: epoch %d was over\n", cell(req.Key), req.Epoch)
			}
		}}))
	})
	return cmd
}

func (a *app) forgetCommand() *cobra.Command {
	var mine claim
	cmd := &cobra.Command{
		Use:   "forget KEY",
		Short: "Declare everything written for a key so far erased",
		Long: `Raise the forgotten floor of a key to your epoch: whatever was written at this epoch
or a lower one counts as erased, for every later owner. It never goes back down.

Only the present owner can do so; otherwise the answer is "lost" and the exit code 4.`,
		Example: `  leasenode forget orders/7 --owner worker-1 --epoch 1`,
		Args:    oneKey,
	}
	mine.define(cmd)
	cmd.RunE = a.action(func(ctx context.Context, args []string) error {
		req := lease.ForgetRequest{Key: args[0], Owner: mine.owner, Epoch: mine.epoch}
		return mine.explain(mutate(ctx, a, mutation[lease.ForgetRequest]{req, cluster.Forget, func(w io.Writer, answer lease.Answer) {
			fmt.Fprintf(w, "%s: whatever was written up to epoch %d counts as erased\n", cell(req.Key), answer.Record.ForgottenAtEpoch)
		}}))
	})
	return cmd
}

// mutation is a request with the method that sends it and the words that tell
// about its answer.
type mutation[R interface{ Mutation() lease.Mutation }] struct {
	req  R
	send func(cluster, context.Context, R) (lease.Answer, error)
	tell func(io.Writer, lease.Answer)
}

// mutate sends m and prints the record that came of it.
func mutate[R interface{ Mutation() lease.Mutation }](ctx context.Context, a *app, m mutation[R]) error {
	if err := m.req.Mutation().Validate(); err != nil {
		return err
	}
	return a.withCluster(func(c cluster) error {
		ctx, cancel := a.within(ctx, 0)
		defer cancel()
		answer, err := m.send(c, ctx, m.req)
		if err != nil {
			return settled(err)
		}
		return a.show(recordOf(answer.Record, answer.Remaining), func(w io.Writer) { m.tell(w, answer) })
	})
}

// suggest returns a command line that the user can type next for the lease r.
func (a *app) suggest(command string, r lease.Record, more ...string) string {
	words := []string{command}
	if !strings.HasPrefix(r.Key, "-") {
		words = append(words, r.Key)
	}
	words = append(words, "--owner", r.Owner, "--epoch", strconv.FormatUint(r.Epoch, 10))
	words = append(words, more...)
	if a.endpointsTyped {
		words = append(words, "--endpoints", strings.Join(a.endpoints, ","))
	}
	if strings.HasPrefix(r.Key, "-") {
		words = append(words, "--", r.Key)
	}
	return a.commandLine(words...)
}
