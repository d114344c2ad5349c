package client_test

import (
	"testing"

	"github.com/leasenode/leasenode/bench/client"
)

func TestPoolGivesEachRoundItsShare(t *testing.T) {
	var pool client.Pool[int]
	for i := range 10 {
		pool.Put(i)
	}
	if _, ok := pool.Take(); ok {
		t.Error("taken before there was a ration")
	}
	seen := map[int]bool{}
	for round, want := range []int{3, 3, 4} {
		pool.Ration(3 - round)
		taken := 0
		for item, ok := pool.Take(); ok; item, ok = pool.Take() {
			if seen[item] {
				t.Errorf("%d was taken twice", item)
			}
			seen[item] = true
			taken++
		}
		if taken != want {
			t.Errorf("round %d took %d, not %d", round, taken, want)
		}
	}
}
