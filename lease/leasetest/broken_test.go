package leasetest_test

import (
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

type brokenCase struct {
	wrap func(lease.Store) lease.Store
	// red are checks that have to fail, green some that are about something else.
	red   []string
	green []string
}

func brokenStores() map[string]brokenCase {
	cases := map[string]brokenCase{}
	for name, c := range brokenGrants() {
		cases[name] = c
	}
	for name, c := range brokenHolding() {
		cases[name] = c
	}
	for name, c := range brokenElsewhere() {
		cases[name] = c
	}
	for name, c := range brokenWaiting() {
		cases[name] = c
	}
	return cases
}

func brokenGrants() map[string]brokenCase {
	return map[string]brokenCase{
		"EvictsHolder": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.EvictsHolder{Store: s} },
			red:   []string{"an unexpired lease excludes everyone else", "an unexpired lease excludes its own holder", "of many who ask at once, one is granted"},
			green: []string{"the grant after an expiry has the next epoch", "a renewal by another owner or for another epoch is refused"},
		},
		"AdmitsHolderAgain": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.AdmitsHolderAgain{Store: s} },
			red:   []string{"an unexpired lease excludes its own holder"},
			green: []string{"an unexpired lease excludes everyone else", "a lease is over at its end instant, not a millisecond before"},
		},
		"ConstantEpoch": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ConstantEpoch{Store: s} },
			red:   []string{"the grant after an expiry has the next epoch", "the grant after a release has the next epoch", "epochs start at 1, move by one and never repeat", "a superseded holder is refused everywhere"},
			green: []string{"an unexpired lease excludes everyone else", "a renewal never shortens a lease"},
		},
		"GrantsRetryAnew": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.GrantsRetryAnew{Store: s} },
			red:   []string{"a repeated attempt is lost once its grant has ended", "a repeated attempt is lost while and after others held the key", "an attempt is remembered for as long as its grant is in the history"},
			green: []string{"a repeated attempt is answered with its own grant while that lasts", "an unexpired lease excludes everyone else"},
		},
		"IgnoresRequestIDs": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.IgnoresRequestIDs{Store: s} },
			red:   []string{"a repeated attempt is answered with its own grant while that lasts", "request ids are held to their limits"},
			green: []string{"an unexpired lease excludes its own holder"},
		},
		"ExpiresEarly": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ExpiresEarly{Store: s} },
			red:   []string{"a lease is over at its end instant, not a millisecond before", "an unexpired lease excludes everyone else"},
			green: []string{"the grant after a release has the next epoch", "a renewal at or after the end is refused", "keys are independent"},
		},
		"ClampsTTL": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ClampsTTL{Store: s} },
			red:   []string{"ttls are held to their limits, to the millisecond"},
			green: []string{"keys are held to their limits", "a lease is over at its end instant, not a millisecond before"},
		},
		"KeepsAttributes": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.KeepsAttributes{Store: s} },
			red:   []string{"attributes belong to the grant and are replaced by the next"},
			green: []string{"attributes are held to their limits", "the grant after an expiry has the next epoch"},
		},
	}
}

func brokenHolding() map[string]brokenCase {
	return map[string]brokenCase{
		"RenewsForAnyone": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.RenewsForAnyone{Store: s} },
			red:   []string{"a renewal by another owner or for another epoch is refused", "a superseded holder is refused everywhere"},
			green: []string{"a renewal at or after the end is refused", "an unexpired lease excludes everyone else"},
		},
		"RenewsAfterEnd": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.RenewsAfterEnd{Store: s} },
			red:   []string{"a renewal at or after the end is refused"},
			green: []string{"a renewal by another owner or for another epoch is refused", "a superseded holder is refused everywhere"},
		},
		"ShortensLease": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ShortensLease{Store: s} },
			red:   []string{"a renewal never shortens a lease"},
			green: []string{"a renewal moves the end to ttl from now and keeps the epoch"},
		},
		"OverstatesRemaining": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.OverstatesRemaining{Store: s} },
			red:   []string{"remaining is never above the ttl asked for, nor negative", "a renewal moves the end to ttl from now and keeps the epoch"},
			green: []string{"a renewal at or after the end is refused"},
		},
		"ReleasesForAnyone": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ReleasesForAnyone{Store: s} },
			red:   []string{"a release by another owner or for another epoch is refused", "a superseded holder is refused everywhere"},
			green: []string{"a release ends the lease at once", "releasing one's own finished lease again changes nothing"},
		},
		"ReleasesOnce": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ReleasesOnce{Store: s} },
			red:   []string{"releasing one's own finished lease again changes nothing"},
			green: []string{"a release ends the lease at once", "a release by another owner or for another epoch is refused"},
		},
		"DropsFloor": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.DropsFloor{Store: s} },
			red:   []string{"the floor outlives its holder and never goes back"},
			green: []string{"only the holder of an unexpired lease sets the floor", "forgetting again changes nothing"},
		},
		"ForgetsForAnyone": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ForgetsForAnyone{Store: s} },
			red:   []string{"only the holder of an unexpired lease sets the floor", "a superseded holder is refused everywhere"},
			green: []string{"forgetting again changes nothing"},
		},
		"ReversesBatch": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ReversesBatch{Store: s} },
			red:   []string{"a batch of renewals has its outcomes in order, each on its own", "renewals of one key in a batch are decided in order"},
			green: []string{"a batch has at most 1000 renewals"},
		},
		"ReversesHistory": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ReversesHistory{Store: s} },
			red:   []string{"history tells every granted operation in order", "the history of all keys tells the same, in one order", "the pages of a history make up the whole"},
			green: []string{"an unexpired lease excludes everyone else"},
		},
		"ListsFinished": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ListsFinished{Store: s} },
			red:   []string{"a listing of what is held leaves out what is over"},
			green: []string{"a listing is in the order of the bytes, by a prefix of bytes"},
		},
	}
}

func brokenWaiting() map[string]brokenCase {
	const inOrder, overtakes = "who waits is granted in the order of coming, by the release", "who does not wait is not served before those who do"
	return map[string]brokenCase{
		"PollsForTurn": {
			wrap:  func(s lease.Store) lease.Store { return &leasetest.PollsForTurn{Store: s} },
			red:   []string{inOrder, overtakes, "a wait that is over is refused with the place in line"},
			green: []string{"waits are held to their limits", "an unexpired lease excludes everyone else"},
		},
		"GrantsTheDead": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.GrantsTheDead{Store: s} },
			red:   []string{"who leaves the line is not granted"},
			green: []string{inOrder, overtakes},
		},
		"HidesPlace": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.HidesPlace{Store: s} },
			red:   []string{"a wait that is over is refused with the place in line"},
			green: []string{inOrder, overtakes},
		},
		"ForgetsPlace": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ForgetsPlace{Store: s} },
			red:   []string{"an attempt that waits again has its place"},
			green: []string{inOrder, overtakes},
		},
		"ReleasesToAnyone": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ReleasesToAnyone{Store: s} },
			red:   []string{"a release to a waiter hands over out of turn, to anyone else it does nothing"},
			green: []string{inOrder, overtakes},
		},
		"ClampsWait": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ClampsWait{Store: s} },
			red:   []string{"waits are held to their limits"},
			green: []string{inOrder, overtakes},
		},
		"ForgetsEnds": {
			wrap:  func(s lease.Store) lease.Store { return leasetest.ForgetsEnds{Store: s} },
			red:   []string{"a lease that ends is handed to the first in line"},
			green: []string{inOrder, "who leaves the line is not granted"},
		},
	}
}
