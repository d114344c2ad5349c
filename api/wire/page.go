package wire

import (
	"fmt"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// ListPageToProto returns page as it is on the wire. What remains of each lease is
// rounded up, as in every read.
func ListPageToProto(page lease.ListPage) *leasepb.ListResponse {
	p := &leasepb.ListResponse{NowMs: page.Now.Millis(), NextPageToken: page.NextPageToken}
	p.Leases = make([]*leasepb.ListResponse_Lease, 0, len(page.Answers))
	for _, a := range page.Answers {
		p.Leases = append(p.Leases, &leasepb.ListResponse_Lease{Record: RecordToProto(a.Record), RemainingMs: millisUp(a.Remaining)})
	}
	return p
}

// ListPageFromProto is the inverse of [ListPageToProto]. A page that no server of
// ours can give is an error without a code.
func ListPageFromProto(p *leasepb.ListResponse) (lease.ListPage, error) {
	now, err := instantFromProto("now_ms", p.GetNowMs())
	if err != nil {
		return lease.ListPage{}, fmt.Errorf("malformed page: %w", err)
	}
	page := lease.ListPage{Now: now, NextPageToken: p.GetNextPageToken()}
	for _, l := range p.GetLeases() {
		record, err := RecordFromProto(l.GetRecord())
		if err != nil {
			return lease.ListPage{}, fmt.Errorf("malformed page: %w", err)
		}
		remaining, err := remainingFromProto(l.GetRemainingMs())
		if err != nil {
			return lease.ListPage{}, fmt.Errorf("malformed page: %w", err)
		}
		page.Answers = append(page.Answers, lease.Answer{Record: record, Now: now, Remaining: remaining})
	}
	return page, nil
}

// HistoryPageToProto returns page as it is on the wire.
func HistoryPageToProto(page lease.HistoryPage) *leasepb.HistoryResponse {
	p := &leasepb.HistoryResponse{NextPageToken: page.NextPageToken}
	p.Entries = make([]*leasepb.HistoryEntry, 0, len(page.Entries))
	for _, e := range page.Entries {
		p.Entries = append(p.Entries, &leasepb.HistoryEntry{
			Index: e.Index, Op: e.Op.String(), Key: []byte(e.Key), Owner: []byte(e.Owner), Epoch: e.Epoch,
			AtMs: e.At.Millis(), WallTimeMs: e.Wall.UnixMilli(),
		})
	}
	return p
}

// HistoryPageFromProto is the inverse of [HistoryPageToProto]. An operation that
// this version does not know, from a newer server, comes out as the zero Op; a page
// that no server can give is an error without a code.
func HistoryPageFromProto(p *leasepb.HistoryResponse) (lease.HistoryPage, error) {
	page := lease.HistoryPage{NextPageToken: p.GetNextPageToken()}
	for _, e := range p.GetEntries() {
		at, err := instantFromProto("at_ms", e.GetAtMs())
		if err != nil {
			return lease.HistoryPage{}, fmt.Errorf("malformed page: %w", err)
		}
		page.Entries = append(page.Entries, lease.Entry{
			Index: e.GetIndex(), Op: opFromProto(e.GetOp()), Key: string(e.GetKey()), Owner: string(e.GetOwner()), Epoch: e.GetEpoch(),
			At: at, Wall: time.UnixMilli(e.GetWallTimeMs()).UTC(),
		})
	}
	return page, nil
}

func opFromProto(name string) lease.Op {
	for op := lease.OpAcquire; op <= lease.OpForget; op++ {
		if op.String() == name {
			return op
		}
	}
	return 0
}
