package leasetest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func ExampleRun() {
	clock := leasetest.NewManualClock(time.Now())
	failures := leasetest.Run(context.Background(), leasetest.Subject{
		Store: leasetest.NewMemory(clock), // the store to check
		Advance: func(_ context.Context, d time.Duration) error {
			clock.Advance(d)
			return nil
		},
	})
	for _, failure := range failures {
		fmt.Println(failure.Check, failure.Err)
	}
	fmt.Println(len(failures), "failures")
	// Output: 0 failures
}

// Follow who owns what, as a router does: your own code takes a [lease.Watcher], and
// gets the store in memory in its tests.
func ExampleMemory_Watch() {
	clock := leasetest.NewManualClock(time.Now())
	store := leasetest.NewMemory(clock)
	ctx := context.Background()
	_, _ = store.Acquire(ctx, lease.AcquireRequest{Key: "orders/7", Owner: "worker-1", TTL: time.Minute})

	for u, err := range store.Watch(ctx, lease.WatchRequest{Prefix: "orders/", Sync: true}) {
		if err != nil {
			fmt.Println(err)
			break
		}
		for _, r := range u.Records {
			fmt.Println(r.Key, "is held by", r.Owner)
		}
		if u.Synced {
			clock.Advance(time.Minute) // and now that lease ends
		}
		for _, e := range u.Events {
			fmt.Println(e.Record.Key, e.Kind, e.Record.Owner)
		}
		if len(u.Events) > 0 {
			break
		}
	}
	// Output:
	// orders/7 is held by worker-1
	// orders/7 expired worker-1
}
