package wire

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// RecordToProto returns r as it is on the wire: attributes in the order of their
// names, the end of the lease in milliseconds, rounded down.
func RecordToProto(r lease.Record) *leasepb.Record {
	return &leasepb.Record{
		Key:              []byte(r.Key),
		Owner:            []byte(r.Owner),
		Epoch:            r.Epoch,
		LeaseUntilMs:     r.LeaseUntil.Millis(),
		ForgottenAtEpoch: r.ForgottenAtEpoch,
		Attributes:       attributesToProto(r.Attributes),
	}
}

// RecordFromProto is the inverse of [RecordToProto]. A record that is missing, or
// whose instant is outside the cluster clock, is an error.
func RecordFromProto(p *leasepb.Record) (lease.Record, error) {
	if p == nil {
		return lease.Record{}, fmt.Errorf("the record is missing")
	}
	until, err := instantFromProto("lease_until_ms", p.GetLeaseUntilMs())
	if err != nil {
		return lease.Record{}, err
	}
	attributes, err := attributesFromProto(p.GetAttributes())
	if err != nil {
		return lease.Record{}, err
	}
	return lease.Record{
		Key:              string(p.GetKey()),
		Owner:            string(p.GetOwner()),
		Epoch:            p.GetEpoch(),
		LeaseUntil:       until,
		ForgottenAtEpoch: p.GetForgottenAtEpoch(),
		Attributes:       attributes,
	}, nil
}

func attributesToProto(attributes map[string]string) []*leasepb.Attribute {
	if len(attributes) == 0 {
		return nil
	}
	list := make([]*leasepb.Attribute, 0, len(attributes))
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		list = append(list, &leasepb.Attribute{Name: []byte(name), Value: []byte(attributes[name])})
	}
	return list
}

// attributesFromProto refuses names that come twice with an [*lease.InvalidError]:
// a map would silently keep one of the two.
func attributesFromProto(list []*leasepb.Attribute) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	attributes := make(map[string]string, min(len(list), lease.MaxAttributes))
	for _, a := range list {
		name := string(a.GetName())
		if _, twice := attributes[name]; twice {
			return nil, &lease.InvalidError{Field: "attributes", Problem: fmt.Sprintf("has the name %.80q twice", name), Limit: "pairs of distinct names"}
		}
		attributes[name] = string(a.GetValue())
	}
	return attributes, nil
}

// maxMillis is the largest number of milliseconds that fits in nanoseconds.
const maxMillis = math.MaxInt64 / int64(time.Millisecond)

func instantFromProto(field string, ms int64) (lease.Instant, error) {
	if ms > maxMillis || ms < -maxMillis {
		return 0, fmt.Errorf("%s %d is outside the cluster clock", field, ms)
	}
	return lease.InstantOfMillis(ms), nil
}

func remainingFromProto(ms int64) (time.Duration, error) {
	if ms < 0 || ms > maxMillis {
		return 0, fmt.Errorf("remaining_ms %d is no length of time", ms)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func millisDown(d time.Duration) int64 { return d.Milliseconds() }

func millisUp(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}
