package wire_test

import (
	"time"

	"pgregory.net/rapid"

	"github.com/leasenode/leasenode/lease"
)

// Generators of what a store can have, with the edges that matter on the wire:
// whole milliseconds where the wire keeps no more, and bytes of any script.

func keys() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`[a-z/]{1,20}`), rapid.StringN(1, 100, 512))
}

func instants() *rapid.Generator[lease.Instant] {
	return rapid.Map(rapid.Int64Range(0, 1<<42), lease.InstantOfMillis)
}

func remainings() *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(0, lease.MaxTTL.Milliseconds()), func(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond })
}

func records() *rapid.Generator[lease.Record] {
	return rapid.Custom(func(t *rapid.T) lease.Record {
		r := lease.Record{
			Key:              keys().Draw(t, "key"),
			Owner:            keys().Draw(t, "owner"),
			Epoch:            rapid.Uint64Range(0, lease.MaxEpoch).Draw(t, "epoch"),
			LeaseUntil:       instants().Draw(t, "until"),
			ForgottenAtEpoch: rapid.Uint64Range(0, lease.MaxEpoch).Draw(t, "floor"),
			Attributes:       rapid.MapOfN(keys(), rapid.StringN(0, 20, 100), 0, 5).Draw(t, "attributes"),
		}
		if len(r.Attributes) == 0 {
			r.Attributes = nil
		}
		return r
	})
}

func answers() *rapid.Generator[lease.Answer] {
	return rapid.Custom(func(t *rapid.T) lease.Answer {
		return lease.Answer{Record: records().Draw(t, "record"), Now: instants().Draw(t, "now"), Remaining: remainings().Draw(t, "remaining"), Changed: rapid.Bool().Draw(t, "changed")}
	})
}

// typedErrors are the errors that carry data, and come back as they were.
func typedErrors() *rapid.Generator[error] {
	return rapid.Custom(func(t *rapid.T) error {
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			return &lease.HeldError{Record: records().Draw(t, "record"), Remaining: remainings().Draw(t, "remaining")}
		case 1:
			return &lease.LostError{Record: records().Draw(t, "record"), Remaining: remainings().Draw(t, "remaining")}
		case 2:
			return &lease.InvalidError{Field: rapid.String().Draw(t, "field"), Problem: rapid.String().Draw(t, "problem"), Limit: rapid.String().Draw(t, "limit")}
		case 3:
			after := positions().Draw(t, "after")
			return &lease.CompactedError{After: after, Oldest: lease.Position{ClusterID: after.ClusterID, Index: rapid.Uint64().Draw(t, "oldest")}}
		case 4:
			return &lease.TooSlowError{Last: positions().Draw(t, "last")}
		case 5:
			return &lease.NotWaitingError{Key: rapid.String().Draw(t, "key"), Owner: rapid.String().Draw(t, "owner")}
		default:
			return &lease.ExhaustedError{Resource: rapid.String().Draw(t, "resource"), Limit: rapid.Uint64().Draw(t, "limit"), Key: rapid.String().Draw(t, "key")}
		}
	})
}

func positions() *rapid.Generator[lease.Position] {
	return rapid.Custom(func(t *rapid.T) lease.Position {
		return lease.Position{ClusterID: rapid.StringN(1, 20, 64).Draw(t, "cluster"), Index: rapid.Uint64().Draw(t, "index")}
	})
}
