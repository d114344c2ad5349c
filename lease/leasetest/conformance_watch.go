package leasetest

import (
	"context"
	"slices"
)

// WatchChecks returns the checks of the contract of [lease.Watcher]. As those of
// [Checks], they are independent of each other and share the subject's clock. Each
// fails for a [Subject] without a Watcher.
func WatchChecks() []Check {
	return slices.Concat(eventChecks(), orderChecks(), resumeChecks(), listingChecks())
}

// RunWatch runs the checks of watching against s, as [Run] does those of the store.
func RunWatch(ctx context.Context, s Subject) []Failure { return run(ctx, s, WatchChecks()) }
