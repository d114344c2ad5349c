package leasetest

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/leasenode/leasenode/lease"
)

// told returns what updates has, with each update replaced by others.
func told(updates iter.Seq2[lease.WatchUpdate, error], replace func(lease.WatchUpdate) []lease.WatchUpdate) iter.Seq2[lease.WatchUpdate, error] {
	return func(yield func(lease.WatchUpdate, error) bool) {
		for u, err := range updates {
			if err != nil {
				yield(u, err)
				return
			}
			for _, u := range replace(u) {
				if !yield(u, nil) {
					return
				}
			}
		}
	}
}

// rewritten returns what updates has, with each update changed.
func rewritten(updates iter.Seq2[lease.WatchUpdate, error], change func(*lease.WatchUpdate)) iter.Seq2[lease.WatchUpdate, error] {
	return told(updates, func(u lease.WatchUpdate) []lease.WatchUpdate {
		u.Events = slices.Clone(u.Events)
		change(&u)
		return []lease.WatchUpdate{u}
	})
}

// SkipsReleases tells no release: whoever watches sees a lease end and go to another.
type SkipsReleases struct{ lease.Watcher }

// Watch leaves the releases out.
func (w SkipsReleases) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		u.Events = slices.DeleteFunc(u.Events, func(e lease.Event) bool { return e.Kind == lease.Released })
	})
}

// RepeatsEvents tells the events of the latest entry again with the next position.
type RepeatsEvents struct{ lease.Watcher }

// Watch puts what came last before what comes next.
func (w RepeatsEvents) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	var last []lease.Event
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		events := u.Events
		u.Events = append(slices.Clone(last), events...)
		last = events
	})
}

// TellsRenewals tells renewals to everyone.
type TellsRenewals struct{ lease.Watcher }

// Watch asks for renewals.
func (w TellsRenewals) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	req.Renewals = true
	return w.Watcher.Watch(ctx, req)
}

// DropsRenewals tells renewals to nobody.
type DropsRenewals struct{ lease.Watcher }

// Watch asks for none.
func (w DropsRenewals) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	req.Renewals = false
	return w.Watcher.Watch(ctx, req)
}

// ExpiresLast tells what an entry did before the leases that it found over: a key is
// acquired, and then expires.
type ExpiresLast struct{ lease.Watcher }

// Watch moves the ends behind the rest of their entry.
func (w ExpiresLast) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		slices.SortStableFunc(u.Events, func(a, b lease.Event) int {
			return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Kind/lease.Expired, b.Kind/lease.Expired))
		})
	})
}

// ExpiresInOrderOfKeys tells the leases that an entry has found over in the order of
// their keys alone.
type ExpiresInOrderOfKeys struct{ lease.Watcher }

// Watch sorts the ends.
func (w ExpiresInOrderOfKeys) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		slices.SortStableFunc(u.Events, func(a, b lease.Event) int {
			if a.Kind != lease.Expired || b.Kind != lease.Expired {
				return cmp.Compare(a.Index, b.Index)
			}
			return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Record.Key, b.Record.Key))
		})
	})
}

// TakesPrefixForPath tells of the prefix "a" what is of "a" and below "a/" only.
type TakesPrefixForPath struct{ lease.Watcher }

// Watch leaves the other keys out.
func (w TakesPrefixForPath) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		u.Events = slices.DeleteFunc(u.Events, func(e lease.Event) bool {
			rest := strings.TrimPrefix(e.Record.Key, strings.TrimSuffix(req.Prefix, "/"))
			return req.Prefix != "" && rest != "" && !strings.HasPrefix(rest, "/")
		})
	})
}

// TakesKeyForPrefix tells of one key what is of all that begin with it.
type TakesKeyForPrefix struct{ lease.Watcher }

// Watch asks for the prefix.
func (w TakesKeyForPrefix) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	if req.Validate() == nil && req.Key != "" {
		req.Key, req.Prefix = "", req.Key
	}
	return w.Watcher.Watch(ctx, req)
}

// ResumesEarly goes on with the entry of a position, not after it.
type ResumesEarly struct{ lease.Watcher }

// Watch asks for one entry more.
func (w ResumesEarly) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	if req.After.Index > 1 {
		req.After.Index--
	}
	return w.Watcher.Watch(ctx, req)
}

// ResumesLate goes on one entry too late.
type ResumesLate struct{ lease.Watcher }

// Watch leaves the events of the first entry out.
func (w ResumesLate) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		u.Events = slices.DeleteFunc(u.Events, func(e lease.Event) bool {
			return req.After != (lease.Position{}) && e.Index == req.After.Index+1
		})
	})
}

// PositionsEarly gives positions that are one entry behind what it has told.
type PositionsEarly struct{ lease.Watcher }

// Watch moves the positions back.
func (w PositionsEarly) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		if u.Position.Index > 1 {
			u.Position.Index--
		}
	})
}

// PositionsLate gives positions that are one entry ahead of what it has told.
type PositionsLate struct{ lease.Watcher }

// Watch moves the positions on.
func (w PositionsLate) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return rewritten(w.Watcher.Watch(ctx, req), func(u *lease.WatchUpdate) {
		if u.Position != (lease.Position{}) {
			u.Position.Index++
		}
	})
}

// SplitsEntries tells each event in an update of its own, with the position of its
// entry: whoever goes on after it misses the rest.
type SplitsEntries struct{ lease.Watcher }

// Watch takes updates apart.
func (w SplitsEntries) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return told(w.Watcher.Watch(ctx, req), func(u lease.WatchUpdate) (parts []lease.WatchUpdate) {
		if len(u.Events) == 0 {
			return []lease.WatchUpdate{u}
		}
		for _, e := range u.Events {
			parts = append(parts, lease.WatchUpdate{Events: []lease.Event{e}, Position: lease.Position{ClusterID: u.Position.ClusterID, Index: e.Index}, Now: e.At})
		}
		return parts
	})
}

// JumpsGaps goes on with what there still is when what a watch needs is kept no longer.
type JumpsGaps struct{ lease.Watcher }

// Watch goes on after the oldest position.
func (w JumpsGaps) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return func(yield func(lease.WatchUpdate, error) bool) {
		for u, err := range w.Watcher.Watch(ctx, req) {
			var gone *lease.CompactedError
			if errors.As(err, &gone) {
				req.After = gone.Oldest
				w.Watch(ctx, req)(yield)
				return
			}
			if !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// ListsFinishedKeys begins with everything that was ever granted, whatever is asked for.
type ListsFinishedKeys struct{ lease.Watcher }

// Watch asks for all records.
func (w ListsFinishedKeys) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	req.Selection = lease.AllRecords
	return w.Watcher.Watch(ctx, req)
}

// ListsInsteadOfGoingOn begins with a listing though what comes after the position is
// kept: whoever watches takes everything anew.
type ListsInsteadOfGoingOn struct{ lease.Watcher }

// Watch drops the position.
func (w ListsInsteadOfGoingOn) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	if req.Sync {
		req.After = lease.Position{}
	}
	return w.Watcher.Watch(ctx, req)
}
