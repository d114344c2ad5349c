package wire_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

func TestWatchesComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		req := lease.WatchRequest{Renewals: rapid.Bool().Draw(t, "renewals"), Selection: lease.Selection(rapid.IntRange(0, 1).Draw(t, "selection"))}
		if rapid.Bool().Draw(t, "one key") {
			req.Key = rapid.StringMatching(`[a-z/]{1,9}`).Draw(t, "key")
		} else {
			req.Prefix = string(rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "prefix"))
		}
		if req.Sync = rapid.Bool().Draw(t, "sync"); !req.Sync {
			req.After = positions().Draw(t, "after")
		}
		gotReq, err := wire.WatchFromProto(sent(t, wire.WatchToProto(req)))
		same(t, req, gotReq, err)

		u := lease.WatchUpdate{
			Records: rapid.SliceOfN(records(), 0, 3).Draw(t, "records"), Synced: rapid.Bool().Draw(t, "synced"), Now: instants().Draw(t, "now"),
			Events: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) lease.Event {
				return lease.Event{Kind: lease.EventKind(rapid.IntRange(1, 5).Draw(t, "kind")), Record: records().Draw(t, "record"), Index: rapid.Uint64().Draw(t, "index"), At: instants().Draw(t, "at")}
			}), 0, 3).Draw(t, "events"),
		}
		if rapid.Bool().Draw(t, "position") {
			u.Position = positions().Draw(t, "at")
		}
		if len(u.Records) == 0 {
			u.Records = nil
		}
		if len(u.Events) == 0 {
			u.Events = nil
		}
		got, err := wire.UpdateFromProto(sent(t, wire.UpdateToProto(u)))
		same(t, u, got, err)
	})
}

func TestUpdatesThatNoServerGivesAreErrors(t *testing.T) {
	for name, p := range map[string]*leasepb.WatchResponse{
		"a clock that wraps":       {NowMs: 1<<63 - 1},
		"an event without record":  {Events: []*leasepb.WatchEvent{{Event: "acquired"}}},
		"an instant that wraps":    {Events: []*leasepb.WatchEvent{{Event: "acquired", Record: &leasepb.Record{}, AtMs: 1<<63 - 1}}},
		"a record with a bad end":  {Records: []*leasepb.Record{{LeaseUntilMs: 1<<63 - 1}}},
		"a record with a bad pair": {Records: []*leasepb.Record{{Attributes: []*leasepb.Attribute{{}, {}}}}},
	} {
		if _, err := wire.UpdateFromProto(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	u, err := wire.UpdateFromProto(&leasepb.WatchResponse{Events: []*leasepb.WatchEvent{{Event: "of a newer server", Record: &leasepb.Record{}}}})
	if err != nil || len(u.Events) != 1 || u.Events[0].Kind != 0 {
		t.Errorf("an unknown event: %+v, %v", u, err)
	}
}
