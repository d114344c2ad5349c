package faulty

import (
	"sync"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// changeEvery is how many changes there are for one that is told wrong.
const changeEvery = 12

// otherEvents has watchers read from a feed of its own, which it fills from the right
// one: every changeEvery-th change comes as often as times says.
type otherEvents struct {
	api.State
	times int

	mu   sync.Mutex
	feed *feed.Feed
}

func newEvents(times int) func(honest) (api.Consensus, api.State) {
	return func(h honest) (api.Consensus, api.State) {
		return h.Consensus, &otherEvents{State: h.state, times: times}
	}
}

// Feed returns the wrong feed, which ends with the right one.
func (o *otherEvents) Feed() *feed.Feed {
	right := o.State.Feed()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.feed != nil || right == nil {
		return o.feed
	}
	all := feed.Selection{Renewals: true}
	watcher, err := right.Watch(all, right.Oldest(all))
	if err != nil {
		return nil
	}
	records := &lastRecords{latest: map[string]lease.Record{}}
	o.feed = feed.Open(records, feed.Bounds{})
	go o.retell(watcher, records, o.feed) // until the right feed is closed
	return o.feed
}

// retell fills the wrong feed.
func (o *otherEvents) retell(from *feed.Watcher, records *lastRecords, to *feed.Feed) {
	defer to.Close()
	defer from.Close()
	for changes := 0; ; {
		batch, err := from.Next()
		if err != nil {
			return
		}
		var entries []feed.Entry
		for _, e := range batch.Events {
			if n := len(entries); n == 0 || entries[n-1].Index != e.Index {
				entries = append(entries, feed.Entry{Index: e.Index, Now: e.At})
			}
			if e.Kind == lease.Expired { // the wrong feed finds out by itself
				continue
			}
			times := 1
			if changes++; changes%changeEvery == 0 {
				times = o.times
			}
			last := &entries[len(entries)-1]
			for range times {
				last.Changes = append(last.Changes, feed.Change{Op: opOf(e.Kind), Before: records.of(e.Record.Key), After: e.Record})
				records.take(e)
			}
		}
		if n := len(entries); !batch.More && (n == 0 || entries[n-1].Index < batch.Index) {
			entries = append(entries, feed.Entry{Index: batch.Index, Now: batch.Now})
		}
		records.at(entries[len(entries)-1].Index)
		to.Add(entries)
		if len(batch.Events) == 0 {
			<-from.Ready()
		}
	}
}

func opOf(kind lease.EventKind) lease.Op {
	for _, op := range []lease.Op{lease.OpAcquire, lease.OpRenew, lease.OpRelease} {
		if lease.EventOf(op) == kind {
			return op
		}
	}
	return lease.OpForget
}

// lastRecords are the records as the wrong feed is told them. It is safe for concurrent
// use.
type lastRecords struct {
	mu     sync.Mutex
	latest map[string]lease.Record
	index  uint64
}

var _ feed.State = (*lastRecords)(nil)

// Leases implements [feed.State]: there are none to begin with.
func (r *lastRecords) Leases(func(string, lease.Instant)) (index uint64, now lease.Instant, err error) {
	return 0, 0, nil
}

// Records implements [feed.State].
func (r *lastRecords) Records(keys []string) ([]lease.Record, uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	records := make([]lease.Record, len(keys))
	for i, key := range keys {
		records[i] = r.latest[key]
	}
	return records, r.index, nil
}

func (r *lastRecords) of(key string) lease.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest[key]
}

func (r *lastRecords) take(e lease.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest[e.Record.Key] = e.Record
}

func (r *lastRecords) at(index uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.index = index
}
