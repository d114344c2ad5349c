package leasetest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/leasenode/leasenode/lease"
)

type updates = iter.Seq2[lease.WatchUpdate, error]

// alteredWatch is a watcher of which what is asked and what is told can be changed; nil
// leaves it.
type alteredWatch struct {
	lease.Watcher
	ask  func(*lease.WatchRequest)
	tell func(lease.WatchRequest, *lease.WatchUpdate)
	fail func(error) error // nil for no element at all
}

func (w alteredWatch) Watch(ctx context.Context, req lease.WatchRequest) updates {
	if w.ask != nil {
		w.ask(&req)
	}
	return func(yield func(lease.WatchUpdate, error) bool) {
		for u, err := range w.Watcher.Watch(ctx, req) {
			if err != nil && w.fail != nil {
				if err = w.fail(err); err == nil {
					return
				}
			}
			if w.tell != nil && err == nil {
				u.Events = slices.Clone(u.Events)
				w.tell(req, &u)
			}
			if !yield(u, err) {
				return
			}
		}
	}
}

func asks(ask func(*lease.WatchRequest)) func(lease.Watcher) lease.Watcher {
	return func(w lease.Watcher) lease.Watcher { return alteredWatch{Watcher: w, ask: ask} }
}

func tells(tell func(lease.WatchRequest, *lease.WatchUpdate)) func(lease.Watcher) lease.Watcher {
	return func(w lease.Watcher) lease.Watcher { return alteredWatch{Watcher: w, tell: tell} }
}

func fails(fail func(error) error) func(lease.Watcher) lease.Watcher {
	return func(w lease.Watcher) lease.Watcher { return alteredWatch{Watcher: w, fail: fail} }
}

// tellsEvents changes each event.
func tellsEvents(change func(*lease.Event)) func(lease.Watcher) lease.Watcher {
	return tells(func(_ lease.WatchRequest, u *lease.WatchUpdate) {
		for i := range u.Events {
			change(&u.Events[i])
		}
	})
}

// withMore has another event follow each that more gives one for, with the same entry.
func withMore(more func(lease.Event) (lease.Event, bool)) func(lease.Watcher) lease.Watcher {
	return tells(func(_ lease.WatchRequest, u *lease.WatchUpdate) {
		var events []lease.Event
		for _, e := range u.Events {
			events = append(events, e)
			if also, ok := more(e); ok {
				events = append(events, also)
			}
		}
		u.Events = events
	})
}

// flawedWatchers have a flaw for whatever no exported broken watcher is about.
func flawedWatchers() map[string]brokenWatcher {
	return map[string]brokenWatcher{
		"forgets attributes":         {wrap: tellsEvents(func(e *lease.Event) { e.Record.Attributes = nil }), red: []string{whatHappens}, green: []string{afterEach}},
		"tells the clock of the end": {wrap: tellsEvents(func(e *lease.Event) { e.At = e.Record.LeaseUntil }), red: []string{whatHappens, theHistory}, green: []string{afterEach}},
		"tells the floor late":       {wrap: tellsEvents(func(e *lease.Event) { e.Record.ForgottenAtEpoch = 0 }), red: []string{whatHappens, aListingGoesOn}, green: []string{afterEach}},
		"numbers entries anew":       {wrap: tellsEvents(func(e *lease.Event) { e.Index += 1000 }), red: []string{whatHappens, theHistory}},
		"expires what was released":  {wrap: withMore(expired(lease.Released)), red: []string{once, whatHappens}},
		"expires at once":            {wrap: withMore(expired(lease.Acquired)), red: []string{once, whatHappens}},
		"never expires":              {wrap: tells(dropKind(lease.Expired)), red: []string{once, endsFirst}, green: []string{theHistory}},
		"tells what changed nothing": {wrap: withMore(func(e lease.Event) (lease.Event, bool) { return e, e.Kind == lease.Forgotten }), red: []string{onlyChanges}},
		"tells all that went before": {wrap: tellsAllThatWentBefore, red: []string{fromNow, endsFirst}, green: []string{onlyChanges}},
		"says nothing of itself":     {wrap: tells(func(req lease.WatchRequest, u *lease.WatchUpdate) { u.Position.Index = 0 }), red: []string{fromNow, whatHappens}},
		"stays where it is":          {wrap: staysWhereItIs, red: []string{inSilence}, green: []string{whatHappens, afterEach, theState}},
		"reverses an entry's events": {wrap: tells(reversed), red: []string{endsFirst, theHistory}},
		"tells of the wrong cluster": {wrap: tells(otherCluster), red: []string{afterEach, isGone}, green: []string{whatHappens}},
		"takes any cluster's":        {wrap: takesAnyCluster, red: []string{foreign}},
		"takes the future":           {wrap: takesTheFuture, red: []string{foreign}, green: []string{afterEach}},
		"calls the past invalid":     {wrap: fails(callsThePastInvalid), red: []string{isGone}, green: []string{foreign}},
		"misstates the oldest":       {wrap: fails(misstatesTheOldest), red: []string{isGone}, green: []string{foreign}},
		"names one too old":          {wrap: fails(namesOneOlder), red: []string{isGone}, green: []string{foreign}},
		"cuts long names":            {wrap: asks(cutsNames), red: []string{requestLimits}, green: []string{byBytes}},
		"prefers the key":            {wrap: asks(prefersTheKey), red: []string{requestLimits}, green: []string{byBytes}},
		"names no field":             {wrap: fails(namesNoField), red: []string{requestLimits, foreign}},
		"ends without an error":      {wrap: fails(func(error) error { return nil }), red: []string{withContext, requestLimits}},
		"hides the cause":            {wrap: fails(hidesTheCause), red: []string{withContext}, green: []string{requestLimits}},
		"outlives its context":       {wrap: outlivesContexts, red: []string{withContext}, green: []string{foreign}},
		"hides the context's error":  {wrap: hides(context.Canceled), red: []string{withContext}, green: []string{requestLimits}},
		"blames the store":           {wrap: fails(blamesTheStore), red: []string{withContext}, green: []string{requestLimits}},
		"calls it served":            {wrap: hides(lease.ErrUnavailable), red: []string{withContext}, green: []string{requestLimits}},
		"lists without a beginning":  {wrap: tells(func(_ lease.WatchRequest, u *lease.WatchUpdate) { u.Reset = false }), red: []string{theState, isGone}, green: []string{afterEach}},
		"loses the last listed":      {wrap: tells(losesTheLastListed), red: []string{theState, aListingGoesOn}, green: []string{afterEach}},
		"lists what was":             {wrap: tells(listsWhatWas), red: []string{theState}, green: []string{afterEach}},
		"lists with an old clock":    {wrap: tells(func(_ lease.WatchRequest, u *lease.WatchUpdate) { u.Now = u.Now.Add(-1e9) }), red: []string{theState}, green: []string{afterEach}},
		"lists its neighbours":       {wrap: listsNeighbours, red: []string{oneKey}, green: []string{theState}},
		"lists once more":            {wrap: tells(listsOnceMore), red: []string{aListingGoesOn, theState}},
		"has positions in a listing": {wrap: hasPositionsInAListing, red: []string{aListingGoesOn, theState}},
		"lists only, then is silent": {wrap: tells(isSilentAfterAListing), red: []string{aListingGoesOn}, green: []string{afterEach}},
	}
}

func expired(after lease.EventKind) func(lease.Event) (lease.Event, bool) {
	return func(e lease.Event) (lease.Event, bool) {
		also := e
		also.Kind, also.At = lease.Expired, max(e.At, e.Record.LeaseUntil)
		return also, e.Kind == after
	}
}

func dropKind(kind lease.EventKind) func(lease.WatchRequest, *lease.WatchUpdate) {
	return func(_ lease.WatchRequest, u *lease.WatchUpdate) {
		u.Events = slices.DeleteFunc(u.Events, func(e lease.Event) bool { return e.Kind == kind })
	}
}

func reversed(_ lease.WatchRequest, u *lease.WatchUpdate) { slices.Reverse(u.Events) }

func otherCluster(_ lease.WatchRequest, u *lease.WatchUpdate) {
	if u.Position.ClusterID != "" {
		u.Position.ClusterID = "x" + u.Position.ClusterID
	}
}

func tellsAllThatWentBefore(w lease.Watcher) lease.Watcher {
	return asks(func(req *lease.WatchRequest) {
		if req.After == (lease.Position{}) && !req.Sync && req.Validate() == nil {
			req.After = lease.Position{ClusterID: here(w).ClusterID}
		}
	})(w)
}

// here returns the position as it is now.
func here(w lease.Watcher) lease.Position {
	for u := range w.Watch(context.Background(), lease.WatchRequest{}) {
		return u.Position
	}
	panic("a watch has not begun")
}

// staysWhereItIs has the position of its latest event, or of its beginning.
func staysWhereItIs(w lease.Watcher) lease.Watcher {
	var at lease.Position
	return tells(func(_ lease.WatchRequest, u *lease.WatchUpdate) {
		if len(u.Events) > 0 || u.Synced || u.Position.ClusterID != at.ClusterID {
			at = u.Position
		} else if u.Position != (lease.Position{}) {
			u.Position = at
		}
	})(w)
}

func takesAnyCluster(w lease.Watcher) lease.Watcher {
	return asks(func(req *lease.WatchRequest) {
		if req.After != (lease.Position{}) {
			req.After.ClusterID = here(w).ClusterID
		}
	})(w)
}

func takesTheFuture(w lease.Watcher) lease.Watcher {
	return asks(func(req *lease.WatchRequest) { req.After.Index = min(req.After.Index, here(w).Index) })(w)
}

func callsThePastInvalid(err error) error {
	if lease.CodeOf(err) == lease.CodeCompacted {
		return &lease.InvalidError{Field: "after", Problem: "is of the past", Limit: "a new one"}
	}
	return err
}

func misstatesTheOldest(err error) error {
	var gone *lease.CompactedError
	if errors.As(err, &gone) {
		return &lease.CompactedError{After: gone.After, Oldest: gone.After}
	}
	return err
}

func namesOneOlder(err error) error {
	var gone *lease.CompactedError
	if errors.As(err, &gone) {
		oldest := gone.Oldest
		oldest.Index--
		return &lease.CompactedError{After: gone.After, Oldest: oldest}
	}
	return err
}

func cutsNames(req *lease.WatchRequest) {
	req.Key = req.Key[:min(len(req.Key), lease.MaxKeyBytes)]
	req.Prefix = req.Prefix[:min(len(req.Prefix), lease.MaxKeyBytes)]
}

func prefersTheKey(req *lease.WatchRequest) {
	if req.Key != "" {
		req.Prefix = ""
	}
}

func namesNoField(err error) error {
	if lease.CodeOf(err) == lease.CodeInvalid {
		return &lease.InvalidError{Field: "request", Problem: "is bad", Limit: "good"}
	}
	return err
}

func hidesTheCause(err error) error {
	switch {
	case errors.Is(err, lease.ErrUnavailable):
		return lease.ErrUnavailable
	case errors.Is(err, context.Canceled):
		return context.Canceled
	default:
		return err
	}
}

// without is an error that does not tell of being hidden.
type without struct {
	error
	hidden error
}

func (e without) Is(target error) bool { return target != e.hidden && errors.Is(e.error, target) }

// hides changes the errors of watches whose context has ended.
func hides(hidden error) func(lease.Watcher) lease.Watcher {
	return fails(func(err error) error {
		if errors.Is(err, context.Canceled) {
			return without{err, hidden}
		}
		return err
	})
}

func blamesTheStore(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.Join(lease.ErrUnavailable, err)
	}
	return err
}

// outlivesContexts goes on until the silence of the check ends it, for another reason.
func outlivesContexts(w lease.Watcher) lease.Watcher {
	return fails(func(err error) error {
		if errors.Is(err, context.Canceled) {
			return errors.Join(err, context.DeadlineExceeded)
		}
		return err
	})(w)
}

func losesTheLastListed(_ lease.WatchRequest, u *lease.WatchUpdate) {
	if n := len(u.Records); n > 0 {
		u.Records = u.Records[:n-1]
	}
}

func listsWhatWas(_ lease.WatchRequest, u *lease.WatchUpdate) {
	u.Records = slices.Clone(u.Records)
	for i := range u.Records {
		u.Records[i].LeaseUntil = u.Records[i].LeaseUntil.Add(-1e6)
	}
}

func listsNeighbours(w lease.Watcher) lease.Watcher {
	return asks(func(req *lease.WatchRequest) {
		if req.Sync && req.Key != "" && req.After == (lease.Position{}) && req.Validate() == nil {
			req.Key, req.Prefix = "", strings.TrimSuffix(req.Key, "/")
		}
	})(w)
}

func listsOnceMore(_ lease.WatchRequest, u *lease.WatchUpdate) {
	if len(u.Events) > 0 {
		u.Records = []lease.Record{u.Events[0].Record}
	}
}

func isSilentAfterAListing(req lease.WatchRequest, u *lease.WatchUpdate) {
	if req.Sync && !u.Synced {
		u.Events = nil
	}
}

func hasPositionsInAListing(w lease.Watcher) lease.Watcher {
	return tells(func(_ lease.WatchRequest, u *lease.WatchUpdate) {
		if u.Reset && !u.Synced {
			u.Position = here(w)
		}
	})(w)
}
