package wire

import (
	"fmt"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// WatchToProto returns r as it is on the wire; all of it is for the server to judge.
func WatchToProto(r lease.WatchRequest) *leasepb.WatchRequest {
	return &leasepb.WatchRequest{
		Key: []byte(r.Key), Prefix: []byte(r.Prefix), Renewals: r.Renewals,
		After: PositionToProto(r.After), Sync: r.Sync, HeldOnly: r.Selection == lease.HeldOnly,
	}
}

// WatchFromProto is the inverse of [WatchToProto]; what is outside a limit is an
// [*lease.InvalidError]. Whether the position is one is for the server to judge.
func WatchFromProto(p *leasepb.WatchRequest) (lease.WatchRequest, error) {
	r := lease.WatchRequest{
		Key: string(p.GetKey()), Prefix: string(p.GetPrefix()), Renewals: p.GetRenewals(),
		After: PositionFromProto(p.GetAfter()), Sync: p.GetSync(),
	}
	if p.GetHeldOnly() {
		r.Selection = lease.HeldOnly
	}
	if p.GetAfter() != nil && r.Sync {
		return lease.WatchRequest{}, &lease.InvalidError{Field: "sync", Problem: "is given with a position to go on after", Limit: "given without one"}
	}
	if p.GetAfter() != nil && r.After == (lease.Position{}) {
		return lease.WatchRequest{}, &lease.InvalidError{Field: "after", Problem: "is empty", Limit: "a position that a watch has given, or left out"}
	}
	return r, r.Validate()
}

// PositionToProto returns p as it is on the wire: nil for the zero position.
func PositionToProto(p lease.Position) *leasepb.Position {
	if p == (lease.Position{}) {
		return nil
	}
	return &leasepb.Position{ClusterId: []byte(p.ClusterID), Index: p.Index}
}

// PositionFromProto is the inverse of [PositionToProto].
func PositionFromProto(p *leasepb.Position) lease.Position {
	return lease.Position{ClusterID: string(p.GetClusterId()), Index: p.GetIndex()}
}

// UpdateToProto returns u as it is on the wire, where Reset is not said: it is the
// beginning of a watch with a listing.
func UpdateToProto(u lease.WatchUpdate) *leasepb.WatchResponse {
	p := &leasepb.WatchResponse{Synced: u.Synced, Position: PositionToProto(u.Position), NowMs: u.Now.Millis()}
	if len(u.Events) > 0 {
		p.Events = make([]*leasepb.WatchEvent, len(u.Events))
	}
	for i, e := range u.Events {
		p.Events[i] = &leasepb.WatchEvent{Event: e.Kind.String(), Record: RecordToProto(e.Record), Index: e.Index, AtMs: e.At.Millis()}
	}
	for _, r := range u.Records {
		p.Records = append(p.Records, RecordToProto(r))
	}
	return p
}

// UpdateFromProto is the inverse of [UpdateToProto]. A kind of event that this version
// does not know, from a newer server, comes out as the zero kind; an update that no
// server can give is an error without a code.
func UpdateFromProto(p *leasepb.WatchResponse) (lease.WatchUpdate, error) {
	u, err := updateFromProto(p)
	if err != nil {
		return lease.WatchUpdate{}, fmt.Errorf("malformed update: %w", err)
	}
	return u, nil
}

func updateFromProto(p *leasepb.WatchResponse) (u lease.WatchUpdate, err error) {
	u.Synced, u.Position = p.GetSynced(), PositionFromProto(p.GetPosition())
	if u.Now, err = instantFromProto("now_ms", p.GetNowMs()); err != nil {
		return u, err
	}
	for _, r := range p.GetRecords() {
		record, err := RecordFromProto(r)
		if err != nil {
			return u, err
		}
		u.Records = append(u.Records, record)
	}
	for _, e := range p.GetEvents() {
		event := lease.Event{Index: e.GetIndex()}
		event.Kind, _ = lease.ParseEventKind(e.GetEvent())
		if event.Record, err = RecordFromProto(e.GetRecord()); err != nil {
			return u, err
		}
		if event.At, err = instantFromProto("at_ms", e.GetAtMs()); err != nil {
			return u, err
		}
		u.Events = append(u.Events, event)
	}
	return u, nil
}
