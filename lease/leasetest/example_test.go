package leasetest_test

import (
	"context"
	"fmt"
	"time"

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
