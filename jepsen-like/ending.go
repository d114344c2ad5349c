package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

const (
	digestEvery   = 500 * time.Millisecond
	digestTimeout = 2 * time.Second
)

// watchDigests asks each node again and again for the digests that it knows, until ctx
// ends.
func (t *trial) watchDigests(ctx context.Context, endpoints []string) {
	ticker := time.NewTicker(digestEvery)
	defer ticker.Stop()
	told := map[history.Digest]bool{}
	for turn := 0; ; turn++ {
		t.addDigests(ctx, endpoints[turn%len(endpoints)], told)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// addDigests takes down what one node tells, if it answers.
func (t *trial) addDigests(ctx context.Context, endpoint string, told map[history.Digest]bool) {
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	client, err := holder.Dial([]string{endpoint}, holder.StayWithEndpoints())
	if err != nil {
		return
	}
	status, err := client.Status(ctx)
	if closed := client.Close(); err != nil || closed != nil || status.DigestIndex == 0 {
		return
	}
	for node, sum := range status.Digests {
		if d := (history.Digest{Node: node, Index: status.DigestIndex, Sum: sum}); !told[d] {
			told[d] = true
			t.tally.AddDigests(d)
		}
	}
}

// takeDown reads what the cluster has in the end, which it has to tell as soon as it has
// to serve after a fault.
func (t *trial) takeDown(ctx context.Context, endpoints []string) {
	ctx, cancel := context.WithTimeout(ctx, t.bound)
	defer cancel()
	last, err := t.read(ctx, endpoints)
	t.follow.Finish(ctx, last)
	if err != nil {
		t.warned = append(t.warned, fmt.Sprintf("the cluster's own history could not be read in the end, so nothing was compared with it: %v", err))
	}
}

// read returns the latest index in the stored history.
func (t *trial) read(ctx context.Context, endpoints []string) (last uint64, err error) {
	client, err := holder.Dial(endpoints)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	var records []lease.Record
	for token := ""; ; {
		page, err := client.List(ctx, lease.ListRequest{Prefix: t.prefix, PageSize: lease.MaxPageSize, PageToken: token})
		if err != nil {
			return 0, err
		}
		for _, answer := range page.Answers {
			records = append(records, answer.Record)
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	var stored []lease.Entry
	for _, record := range records {
		for token := ""; ; {
			page, err := client.History(ctx, lease.HistoryRequest{Key: record.Key, PageSize: lease.MaxPageSize, PageToken: token})
			if err != nil {
				return 0, err
			}
			stored = append(stored, page.Entries...)
			if token = page.NextPageToken; token == "" {
				break
			}
		}
	}
	slices.SortStableFunc(stored, func(a, b lease.Entry) int { return cmp.Compare(a.Index, b.Index) })
	t.tally.SetRecords(records)
	t.tally.SetStored(stored)
	if len(stored) == 0 {
		return 0, nil
	}
	return stored[len(stored)-1].Index, nil
}
