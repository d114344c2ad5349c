package check_test

import (
	"slices"
	"time"

	"github.com/leasenode/leasenode/jepsen-like/history"
	"github.com/leasenode/leasenode/lease"
)

// goodWatched is what two watchers are told of the good run.
func goodWatched() []history.Watched {
	event := func(index uint64, kind lease.EventKind, r lease.Record, clock time.Duration) history.Watched {
		return history.Watched{
			Mark: history.WatchTold, Event: kind.String(), Key: r.Key, Owner: r.Owner, Epoch: r.Epoch, LeaseUntil: r.LeaseUntil,
			Floor: r.ForgottenAtEpoch, Index: index, At: at(clock * ms),
		}
	}
	all := []history.Watched{
		{Mark: history.WatchBegan},
		{Mark: history.WatchReset, Index: 10, At: at(0)},
		event(11, lease.Acquired, rec("a", 1, 1005*ms, 0), 5),
		event(12, lease.Renewed, rec("a", 1, 1305*ms, 0), 305),
		event(13, lease.Forgotten, rec("a", 1, 1305*ms, 1), 405),
		event(14, lease.Released, rec("a", 1, 505*ms, 1), 505),
		event(15, lease.Acquired, rec("b", 2, 1605*ms, 1), 605),
		event(16, lease.Expired, rec("b", 2, 1605*ms, 1), 3005),
		event(16, lease.Acquired, rec("c", 3, 4005*ms, 1), 3005),
		event(17, lease.Released, rec("c", 3, 3105*ms, 1), 3105),
		{Mark: history.WatchReached, Index: 18, At: at(3500 * ms)},
	}
	quiet := slices.DeleteFunc(slices.Clone(all), func(w history.Watched) bool { return w.Event == lease.Renewed.String() })
	return append(toldTo("w1", all), toldTo("w2", quiet)...)
}

// toldTo has what a watcher is told say that it is of that watcher, and in which order and
// when it was told.
func toldTo(watcher string, all []history.Watched) []history.Watched {
	var when time.Duration
	told := slices.Clone(all)
	for i := range told {
		w := &told[i]
		if w.At > 0 {
			when = max(when, w.At.Sub(at(0))+10*ms)
		}
		w.Watcher, w.Renewals, w.Seq, w.When = watcher, watcher == "w1", i+1, when
	}
	return told
}

// watch changes what the watchers with these names are told.
func watch(names []string, change func([]history.Watched) []history.Watched) doctor {
	return func(r *history.Run) {
		var all []history.Watched
		for _, name := range []string{"w1", "w2"} {
			mine := slices.DeleteFunc(slices.Clone(r.Watched), func(w history.Watched) bool { return w.Watcher != name })
			if slices.Contains(names, name) {
				mine = change(mine)
			}
			all = append(all, toldTo(name, mine)...)
		}
		r.Watched = all
	}
}

var (
	oneWatcher  = []string{"w1"}
	bothWatches = []string{"w1", "w2"}
)

// where is the place of the event of that kind and epoch.
func where(all []history.Watched, kind lease.EventKind, epoch uint64) int {
	return slices.IndexFunc(all, func(w history.Watched) bool { return w.Event == kind.String() && w.Epoch == epoch })
}

func dropped(kind lease.EventKind, epoch uint64) func([]history.Watched) []history.Watched {
	return func(all []history.Watched) []history.Watched {
		i := where(all, kind, epoch)
		return slices.Delete(all, i, i+1)
	}
}

func altered(kind lease.EventKind, epoch uint64, change func(*history.Watched)) func([]history.Watched) []history.Watched {
	return func(all []history.Watched) []history.Watched {
		change(&all[where(all, kind, epoch)])
		return all
	}
}

func doctoredWatches() map[string]doctor {
	after := func(kind lease.EventKind, epoch uint64, w history.Watched) func([]history.Watched) []history.Watched {
		return func(all []history.Watched) []history.Watched {
			i := where(all, kind, epoch)
			made := all[i]
			made.Event = w.Event
			if w.Index > 0 {
				made.Index, made.At = w.Index, w.At
			}
			return slices.Insert(all, i+1, made)
		}
	}
	swapped := func(all []history.Watched) []history.Watched {
		i := where(all, lease.Forgotten, 1)
		all[i-1], all[i] = all[i], all[i-1]
		return all
	}
	return map[string]doctor{
		"a gap":                       watch(oneWatcher, dropped(lease.Forgotten, 1)),
		"a gap for all":               watch(bothWatches, dropped(lease.Forgotten, 1)),
		"a renewal is missing":        watch(oneWatcher, dropped(lease.Renewed, 1)),
		"the last is missing for all": watch(bothWatches, dropped(lease.Released, 3)),
		"a repeat":                    watch(oneWatcher, after(lease.Renewed, 1, history.Watched{Event: "renewed"})),
		"out of order":                watch(oneWatcher, swapped),
		"an end is missing":           watch(oneWatcher, dropped(lease.Expired, 2)),
		"an end is missing for all":   watch(bothWatches, dropped(lease.Expired, 2)),
		"the last end is missing for all": all(without(11), without(12), without(13), without(14), func(r *history.Run) {
			r.Stored, r.Records[0] = r.Stored[:5], rec("b", 2, 1605*ms, 1)
		}, watch(bothWatches, func(all []history.Watched) []history.Watched {
			return slices.Delete(all, where(all, lease.Expired, 2), where(all, lease.Released, 3)+1)
		})),
		"an end twice":                  watch(bothWatches, after(lease.Expired, 2, history.Watched{Event: "expired"})),
		"an end after a release":        watch(bothWatches, after(lease.Released, 1, history.Watched{Event: "expired", Index: 15, At: at(605 * ms)})),
		"an end after the last release": watch(bothWatches, after(lease.Released, 3, history.Watched{Event: "expired", Index: 18, At: at(3200 * ms)})),
		"an end too early":              watch(bothWatches, altered(lease.Expired, 2, func(w *history.Watched) { w.Index, w.At = 15, at(1604*ms) })),
		"another end":                   watch(oneWatcher, altered(lease.Expired, 2, func(w *history.Watched) { w.LeaseUntil = at(1606 * ms) })),
		"another epoch":                 watch(oneWatcher, altered(lease.Forgotten, 1, func(w *history.Watched) { w.Epoch = 2 })),
		"another epoch for all":         watch(bothWatches, altered(lease.Acquired, 3, func(w *history.Watched) { w.Epoch = 4 })),
		"another owner":                 watch(bothWatches, altered(lease.Acquired, 2, func(w *history.Watched) { w.Owner = "z" })),
		"another index":                 watch(bothWatches, altered(lease.Released, 3, func(w *history.Watched) { w.Index = 18 })),
		"invented":                      watch(bothWatches, after(lease.Acquired, 2, history.Watched{Event: "released"})),
		"a position that is refused": watch(oneWatcher, func(all []history.Watched) []history.Watched {
			return append(all, history.Watched{Mark: history.WatchRefused, Index: 18, Error: "of the future"})
		}),
		"told again after a position": watch(bothWatches, func(all []history.Watched) []history.Watched {
			i := where(all, lease.Released, 3)
			return slices.Insert(all, i, history.Watched{Mark: history.WatchReached, Index: 17, At: at(3105 * ms)})
		}),
	}
}

// nearWatches look wrong and are not.
func nearWatches() map[string]doctor {
	listing := func(listed history.Watched) func([]history.Watched) []history.Watched {
		return func(all []history.Watched) []history.Watched {
			i := where(all, lease.Expired, 2)
			return append([]history.Watched{
				{Mark: history.WatchBegan}, {Mark: history.WatchReset, Index: 15, At: at(605 * ms)}, listed,
			}, all[i:]...)
		}
	}
	held := history.Watched{Mark: history.WatchListed, Key: "k", Owner: "b", Epoch: 2, LeaseUntil: at(1605 * ms), Floor: 1}
	return map[string]doctor{
		"a watcher lists in the midst": watch(oneWatcher, func(all []history.Watched) []history.Watched {
			held.Watcher = "w1"
			return listing(held)(all)
		}),
		"a watcher is cut off and goes on": watch(bothWatches, func(all []history.Watched) []history.Watched {
			return slices.Insert(all, where(all, lease.Released, 1), history.Watched{Mark: history.WatchReached, Index: 13, At: at(405 * ms)})
		}),
		"an end in the millisecond in which it is found": watch(bothWatches, altered(lease.Expired, 2, func(w *history.Watched) { w.Index, w.At = 16, at(3005*ms) })),
		"history is trimmed, and watched":                func(r *history.Run) { r.Stored = r.Stored[4:] },
	}
}
