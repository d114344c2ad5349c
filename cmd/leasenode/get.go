package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/lease"
)

func (a *app) getCommand() *cobra.Command {
	var how reading
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Show who owns a key",
		Long: `Show who owns a key, at which epoch and for how long.

The answer has everything that was acknowledged before you asked. With --stale the
node that is asked answers from what it has: quicker, without a leader too, and
perhaps old. A key that was never granted has epoch 0 and is no error.`,
		Example: `  leasenode get orders/7
  leasenode get orders/7 -o json`,
		Args: oneKey,
	}
	how.define(cmd)
	cmd.RunE = a.action(func(ctx context.Context, args []string) error {
		return a.get(ctx, lease.GetRequest{Key: args[0], Consistency: how.consistency()})
	})
	return cmd
}

// reading is how recent an answer has to be.
type reading struct{ stale bool }

func (r *reading) define(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.stale, "stale", false, "take what the asked node has, however old")
}

func (r *reading) consistency() lease.Consistency {
	if r.stale {
		return lease.Stale
	}
	return lease.Linearizable
}

func (a *app) get(ctx context.Context, req lease.GetRequest) error {
	if err := lease.ValidateKey(req.Key); err != nil {
		return err
	}
	return a.withCluster(func(c cluster) error {
		ctx, cancel := a.within(ctx, 0)
		defer cancel()
		answer, err := c.Get(ctx, req)
		if err != nil {
			return &readError{err}
		}
		return a.show(recordOf(answer.Record, answer.Remaining), func(w io.Writer) { tellRecord(w, answer) })
	})
}

func tellRecord(w io.Writer, answer lease.Answer) {
	r := answer.Record
	if r.Epoch == 0 {
		fmt.Fprintf(w, "%s was never granted\n", cell(r.Key))
		return
	}
	rows := [][]string{
		{"key", cell(r.Key)},
		{"state", state(answer)},
		{"owner", cell(r.Owner)},
		{"epoch", strconv.FormatUint(r.Epoch, 10)},
	}
	if answer.Remaining == 0 {
		rows[2][0] = "last owner"
	}
	if r.ForgottenAtEpoch > 0 {
		rows = append(rows, []string{"forgotten", fmt.Sprintf("up to epoch %d", r.ForgottenAtEpoch)})
	}
	if len(r.Attributes) > 0 {
		rows = append(rows, []string{"attributes", attributesText(r.Attributes)})
	}
	columns(w, rows)
}

func state(answer lease.Answer) string {
	if answer.Remaining == 0 {
		return "free"
	}
	return "held, " + length(answer.Remaining) + " left"
}
