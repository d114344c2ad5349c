package leasetest_test

import (
	"maps"

	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

// brokenWatcher is to be caught by the checks in red, and by none of those in green.
type brokenWatcher struct {
	wrap       func(lease.Watcher) lease.Watcher
	red, green []string
}

// The names of the checks of watching.
const (
	whatHappens    = "a watch tells what happens to keys, each with its record, entry and clock"
	onlyChanges    = "what was refused or changed nothing is not told"
	renewalsAsked  = "renewals are told only if they are asked for"
	byBytes        = "a watch is of one key, or of a prefix of bytes"
	once           = "a lease that was not released expires once, at its end"
	endsFirst      = "leases that have ended are told in the order of end and key, before what their entry did"
	wholeEntries   = "what one entry did comes in one update"
	theHistory     = "events are what the history has, in its order"
	fromNow        = "a watch from now tells its position first, and nothing from before"
	afterEach      = "a watch goes on after each position without a gap and without a repeat"
	inSilence      = "a watch that has nothing to tell tells its position"
	foreign        = "a position of another cluster or of the future is refused"
	isGone         = "what is kept no longer is refused with the oldest position"
	requestLimits  = "requests to watch are held to their limits"
	withContext    = "a watch ends with its context, and wraps the cause"
	theState       = "a watch can begin with a listing of the state at a position"
	aListingGoesOn = "what follows a listing makes of it the state that follows"
	whatIsHeld     = "a listing of what is held leaves out what nobody holds"
	oneKey         = "a listing of one key has only that, and nothing if it was never granted"
	nothingListed  = "with a position, nothing is listed while what comes after it is kept"
)

func brokenWatchers() map[string]brokenWatcher {
	watchers := map[string]brokenWatcher{
		"SkipsReleases": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.SkipsReleases{Watcher: w} },
			red:   []string{whatHappens, theHistory, fromNow, aListingGoesOn},
			green: []string{afterEach, endsFirst, theState},
		},
		"RepeatsEvents": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.RepeatsEvents{Watcher: w} },
			red:   []string{whatHappens, theHistory, afterEach},
			green: []string{foreign, oneKey},
		},
		"TellsRenewals": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.TellsRenewals{Watcher: w} },
			red:   []string{renewalsAsked},
			green: []string{whatHappens, theHistory, afterEach, aListingGoesOn},
		},
		"DropsRenewals": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.DropsRenewals{Watcher: w} },
			red:   []string{renewalsAsked, whatHappens, theHistory, aListingGoesOn},
			green: []string{once, endsFirst, theState},
		},
		"ExpiresLast": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.ExpiresLast{Watcher: w} },
			red:   []string{endsFirst, theHistory},
			green: []string{onlyChanges, fromNow, theState},
		},
		"ExpiresInOrderOfKeys": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.ExpiresInOrderOfKeys{Watcher: w} },
			red:   []string{endsFirst, theHistory},
			green: []string{once, wholeEntries, afterEach},
		},
		"TakesPrefixForPath": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.TakesPrefixForPath{Watcher: w} },
			red:   []string{byBytes},
			green: []string{whatHappens, theHistory, afterEach},
		},
		"TakesKeyForPrefix": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.TakesKeyForPrefix{Watcher: w} },
			red:   []string{byBytes, oneKey},
			green: []string{whatHappens, theHistory, afterEach, requestLimits},
		},
		"ResumesEarly": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.ResumesEarly{Watcher: w} },
			red:   []string{afterEach},
			green: []string{whatHappens, theHistory, fromNow, aListingGoesOn},
		},
		"ResumesLate": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.ResumesLate{Watcher: w} },
			red:   []string{afterEach, nothingListed},
			green: []string{whatHappens, theHistory, fromNow, foreign},
		},
		"PositionsEarly": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.PositionsEarly{Watcher: w} },
			red:   []string{afterEach, whatHappens},
			green: []string{foreign, requestLimits},
		},
		"PositionsLate": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.PositionsLate{Watcher: w} },
			red:   []string{afterEach},
			green: []string{foreign, requestLimits},
		},
		"SplitsEntries": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.SplitsEntries{Watcher: w} },
			red:   []string{wholeEntries, afterEach},
			green: []string{fromNow, theState, foreign},
		},
		"JumpsGaps": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.JumpsGaps{Watcher: w} },
			red:   []string{isGone},
			green: []string{afterEach, theState, foreign},
		},
		"ListsFinishedKeys": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.ListsFinishedKeys{Watcher: w} },
			red:   []string{whatIsHeld},
			green: []string{theState, aListingGoesOn, oneKey},
		},
		"ListsInsteadOfGoingOn": {
			wrap:  func(w lease.Watcher) lease.Watcher { return leasetest.ListsInsteadOfGoingOn{Watcher: w} },
			red:   []string{nothingListed, foreign},
			green: []string{theState, whatIsHeld, afterEach},
		},
	}
	maps.Copy(watchers, flawedWatchers())
	return watchers
}
