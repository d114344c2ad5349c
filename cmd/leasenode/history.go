package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasenode/leasenode/lease"
)

func (a *app) historyCommand() *cobra.Command {
	var how reading
	cmd := &cobra.Command{
		Use:   "history [KEY]",
		Short: "Show what was granted, for a key or for all",
		Long: `Show every operation that was granted, oldest first, for one key or for all of them.

It is bounded: old renewals go first, then old grants. The time is the leader's time of
day, for reading; the order is that of the index.

With --stale the node that is asked answers from what it has, without a leader too.`,
		Example: `  leasenode history
  leasenode history orders/7 -o json`,
		Args: arguments{what: "KEY", max: 1}.check,
	}
	how.define(cmd)
	cmd.RunE = a.action(func(ctx context.Context, args []string) error {
		req := lease.HistoryRequest{PageSize: lease.MaxPageSize, Consistency: how.consistency()}
		if len(args) > 0 {
			if err := lease.ValidateKey(args[0]); err != nil {
				return err
			}
			req.Key = args[0]
		}
		return a.history(ctx, req)
	})
	return cmd
}

type historyJSON struct {
	Entries []entryJSON `json:"entries"`
}

type entryJSON struct {
	Index    uint64 `json:"index"`
	Op       string `json:"op"`
	Key      string `json:"key"`
	Owner    string `json:"owner"`
	Epoch    uint64 `json:"epoch"`
	AtMS     int64  `json:"at_ms"`
	WallTime string `json:"wall_time"`
}

const wallTimeLayout = "2006-01-02T15:04:05.000Z07:00"

func entryOf(e lease.Entry) entryJSON {
	return entryJSON{
		Index: e.Index, Op: e.Op.String(), Key: e.Key, Owner: e.Owner, Epoch: e.Epoch,
		AtMS: e.At.Millis(), WallTime: e.Wall.UTC().Format(wallTimeLayout),
	}
}

func (a *app) history(ctx context.Context, req lease.HistoryRequest) error {
	result := historyJSON{Entries: []entryJSON{}}
	rows := [][]string{{"INDEX", "TIME (UTC)", "OPERATION", "KEY", "OWNER", "EPOCH"}}
	err := a.pages(ctx, func(ctx context.Context, c cluster) (more bool, err error) {
		page, err := c.History(ctx, req)
		for _, e := range page.Entries {
			result.Entries = append(result.Entries, entryOf(e))
			rows = append(rows, []string{
				strconv.FormatUint(e.Index, 10), e.Wall.UTC().Format(time.DateTime),
				e.Op.String(), cell(e.Key), cell(e.Owner), strconv.FormatUint(e.Epoch, 10),
			})
		}
		req.PageToken = page.NextPageToken
		return req.PageToken != "", err
	})
	if err != nil {
		return err
	}
	return a.show(result, func(w io.Writer) {
		if len(result.Entries) == 0 {
			fmt.Fprintln(w, "nothing was granted")
			return
		}
		columns(w, rows)
	})
}
