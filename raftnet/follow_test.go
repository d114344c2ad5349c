package raftnet_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// While an entry is on its way, what comes makes one of its own only if it is as much;
// else it waits for company, until that is decided.
func TestALittleDoesNotFollowMuch(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *cluster, l *member, followers []*member) {
		const much = 10
		var calls sync.WaitGroup
		n := 0
		propose := func(mutations int) {
			var batch []lease.Mutation
			for range mutations {
				n++
				batch = append(batch, acquire(fmt.Sprint("k", n), "o", time.Minute))
			}
			calls.Go(func() {
				if _, err := l.Propose(t.Context(), batch); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, later := range []struct {
			mutations []int // each when the ones before have come
			entries   uint64
		}{
			{[]int{1, 1, 1}, 2},
			{[]int{much, 1}, 3},
			{[]int{1, much - 1, 1}, 3},
			{[]int{much, much, 1}, 3},
		} {
			before := l.fsm.AppliedIndex()
			release := c.net.hold(link{l.id, followers[0].id}, link{l.id, followers[1].id})
			propose(much)
			for _, mutations := range later.mutations {
				propose(mutations)
			}
			release()
			calls.Wait()
			if used := l.fsm.AppliedIndex() - before; used != later.entries {
				t.Errorf("after %d came %d: %d entries, want %d", much, later.mutations, used, later.entries)
			}
		}
	})
}
