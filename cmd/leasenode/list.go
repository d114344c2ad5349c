package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/lease"
)

func (a *app) listCommand() *cobra.Command {
	var held bool
	var how reading
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "Show all keys, or those that begin with a prefix",
		Long: `Show all keys that were ever granted, or those that begin with PREFIX, in the order
of their bytes. The prefix is compared by bytes too: "a" finds "a", "a/1" and "ab".

With --stale the node that is asked answers from what it has, without a leader too.`,
		Example: `  leasenode list
  leasenode list orders/ --held`,
		Args: arguments{what: "PREFIX", max: 1}.check,
	}
	cmd.Flags().BoolVar(&held, "held", false, "only keys that somebody owns now")
	how.define(cmd)
	cmd.RunE = a.action(func(ctx context.Context, args []string) error {
		req := lease.ListRequest{PageSize: lease.MaxPageSize, Consistency: how.consistency()}
		if len(args) > 0 {
			req.Prefix = args[0]
		}
		if held {
			req.Selection = lease.HeldOnly
		}
		return a.list(ctx, req)
	})
	return cmd
}

type listJSON struct {
	Leases []recordJSON `json:"leases"`
}

func (a *app) list(ctx context.Context, req lease.ListRequest) error {
	if err := lease.ValidatePrefix(req.Prefix); err != nil {
		return err
	}
	result := listJSON{Leases: []recordJSON{}}
	rows := [][]string{{"KEY", "STATE", "OWNER", "EPOCH", "FORGOTTEN", "ATTRIBUTES"}}
	err := a.pages(ctx, func(ctx context.Context, c cluster) (more bool, err error) {
		page, err := c.List(ctx, req)
		for _, answer := range page.Answers {
			result.Leases = append(result.Leases, recordOf(answer.Record, answer.Remaining))
			rows = append(rows, listRow(answer))
		}
		req.PageToken = page.NextPageToken
		return req.PageToken != "", err
	})
	if err != nil {
		return err
	}
	return a.show(result, func(w io.Writer) {
		if len(result.Leases) == 0 {
			fmt.Fprintln(w, noneOf(req))
			return
		}
		columns(w, rows)
	})
}

// noneOf says that nothing was found. Whether there are keys that nobody holds was not
// asked.
func noneOf(req lease.ListRequest) string {
	if req.Selection == lease.HeldOnly {
		return "no such key is held now"
	}
	return "no such key"
}

func listRow(answer lease.Answer) []string {
	r := answer.Record
	forgotten := "-"
	if r.ForgottenAtEpoch > 0 {
		forgotten = strconv.FormatUint(r.ForgottenAtEpoch, 10)
	}
	return []string{cell(r.Key), state(answer), cell(r.Owner), strconv.FormatUint(r.Epoch, 10), forgotten, attributesText(r.Attributes)}
}

// pages calls fetch, each time with its own timeout, until there are no more pages.
func (a *app) pages(ctx context.Context, fetch func(context.Context, cluster) (more bool, err error)) error {
	return a.withCluster(func(c cluster) error {
		for more := true; more; {
			var err error
			pageCtx, cancel := a.within(ctx, 0)
			more, err = fetch(pageCtx, c)
			cancel()
			if err != nil {
				return &readError{err}
			}
		}
		return nil
	})
}
