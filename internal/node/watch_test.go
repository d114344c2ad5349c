package node_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
)

// watched is what a watch has told.
type watched struct {
	events   []lease.Event
	records  map[string]lease.Record // of the latest listing
	synced   lease.Position
	position lease.Position
	// positions are all that were told.
	positions []lease.Position
}

// watchTo reads a watch until its position is index at least.
func (c *cluster) watchTo(client *holder.Client, req lease.WatchRequest, index uint64) (*watched, error) {
	w := &watched{position: req.After}
	for u, err := range client.Watch(c.within(time.Minute), req) {
		if err != nil {
			return w, err
		}
		w.take(u)
		if w.position.Index >= index {
			break
		}
	}
	return w, nil
}

func (w *watched) take(u lease.WatchUpdate) {
	if u.Reset {
		w.records = map[string]lease.Record{}
	}
	for _, r := range u.Records {
		w.records[r.Key] = r
	}
	if u.Synced {
		w.synced = u.Position
	}
	w.events = append(w.events, u.Events...)
	if u.Position != (lease.Position{}) {
		w.position = u.Position
		w.positions = append(w.positions, u.Position)
	}
}

func (c *cluster) mustWatchTo(client *holder.Client, req lease.WatchRequest, index uint64) *watched {
	c.t.Helper()
	w, err := c.watchTo(client, req, index)
	if err != nil {
		c.t.Fatal(err)
	}
	return w
}

// here returns the position as it is now.
func (c *cluster) here(client *holder.Client) lease.Position {
	c.t.Helper()
	return c.mustWatchTo(client, lease.WatchRequest{}, 0).position
}

// live does all there is to do to keys, a few times each, and leaves some leases to end.
func (c *cluster) live(client *holder.Client, prefix string, keys int) {
	c.t.Helper()
	ctx := c.within(time.Minute)
	check := func(_ lease.Answer, err error) {
		if err != nil {
			c.t.Errorf("%s: %v", prefix, err)
		}
	}
	for i := range keys {
		key := fmt.Sprintf("%s/%d", prefix, i)
		a, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "o", TTL: 30 * time.Second, Attributes: map[string]string{"addr": "h:1", "v": "2"}})
		check(a, err)
		epoch := a.Record.Epoch
		check(client.Renew(ctx, lease.RenewRequest{Key: key, Owner: "o", Epoch: epoch, TTL: time.Minute}))
		check(client.Forget(ctx, lease.ForgetRequest{Key: key, Owner: "o", Epoch: epoch}))
		check(client.Release(ctx, lease.ReleaseRequest{Key: key, Owner: "o", Epoch: epoch}))
		check(client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: "p", TTL: lease.MinTTL}))
	}
}

// checkHistory holds that the events of keys with the prefix are exactly those that
// their history has, and the ends of the leases that nobody has released.
func (c *cluster) checkHistory(events []lease.Event, after uint64, keys []string) {
	c.t.Helper()
	client := c.dial()
	for _, key := range keys {
		page, err := client.History(c.within(20*time.Second), lease.HistoryRequest{Key: key, PageSize: lease.MaxPageSize})
		if err != nil {
			c.t.Fatal(err)
		}
		var want, got []string
		for _, e := range page.Entries {
			if e.Index > after {
				want = append(want, fmt.Sprintf("%d %v %s %d at %d", e.Index, lease.EventOf(e.Op), e.Owner, e.Epoch, e.At))
			}
		}
		until, held := lease.Instant(0), false
		for _, e := range events {
			if e.Record.Key != key {
				continue
			}
			if e.Kind == lease.Expired {
				if !held || until != e.Record.LeaseUntil || e.At < until {
					c.t.Errorf("%+v, but the lease was held: %v, until %d", e, held, until)
				}
				held = false
				continue
			}
			if held && e.Kind == lease.Acquired {
				c.t.Errorf("%+v while the lease had not ended", e)
			}
			until, held = e.Record.LeaseUntil, e.Kind != lease.Released
			got = append(got, fmt.Sprintf("%d %v %s %d at %d", e.Index, e.Kind, e.Record.Owner, e.Record.Epoch, e.At))
		}
		if !slices.Equal(got, want) {
			c.t.Errorf("%s:\n got %q\nwant %q", key, got, want)
		}
	}
}

func keysOf(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s/%d", prefix, i)
	}
	return keys
}

func TestEveryNodeTellsTheSameFromEveryPosition(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	start := c.here(client)
	c.live(client, "a", 5)
	c.live(client, "b", 5)
	time.Sleep(lease.MinTTL) // the last leases end
	if _, err := client.List(c.within(20*time.Second), lease.ListRequest{Selection: lease.HeldOnly}); err != nil {
		t.Fatal(err) // and the log knows
	}
	end := c.here(client)
	req := lease.WatchRequest{Renewals: true, After: start}
	whole := c.mustWatchTo(c.dial(0), req, end.Index)
	events := until(whole.events, end.Index)
	c.checkHistory(events, start.Index, append(keysOf("a", 5), keysOf("b", 5)...))
	if n := count(events, lease.Expired); n != 10 || len(events) != 60 {
		t.Errorf("%d events, and %d of them ends", len(events), n)
	}
	if r := events[0].Record; r.Attributes["addr"] != "h:1" || events[0].Kind != lease.Acquired {
		t.Errorf("the first is %+v", events[0])
	}
	for node := range 3 {
		for i, from := range whole.positions {
			if i%5 != node {
				continue
			}
			req.After = from
			got := c.mustWatchTo(c.dial(node), req, end.Index)
			want := slices.DeleteFunc(slices.Clone(events), func(e lease.Event) bool { return e.Index <= from.Index })
			if got := until(got.events, end.Index); len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("node %d after %v has other events", node, from)
			}
		}
	}
	for _, narrow := range []lease.WatchRequest{{Key: "a/3"}, {Prefix: "b/"}, {Prefix: "a/3", Renewals: true}, {Key: "a/"}} {
		narrow.After = start
		got := until(c.mustWatchTo(c.dial(1), narrow, end.Index).events, end.Index)
		want := slices.DeleteFunc(slices.Clone(events), func(e lease.Event) bool {
			return e.Kind == lease.Renewed && !narrow.Renewals || narrow.Key != "" && e.Record.Key != narrow.Key || narrow.Key == "" && e.Record.Key[:min(len(e.Record.Key), len(narrow.Prefix))] != narrow.Prefix
		})
		if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: %d events, want %d", narrow, len(got), len(want))
		}
	}
}

func until(events []lease.Event, index uint64) []lease.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e lease.Event) bool { return e.Index > index })
}

func count(events []lease.Event, kind lease.EventKind) (n int) {
	for _, e := range events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func TestPositionsThatAreNoneAreRefused(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	here := c.here(client)
	for name, after := range map[string]lease.Position{
		"another cluster": {ClusterID: "0123456789", Index: here.Index},
		"no cluster":      {Index: here.Index},
		"the future":      {ClusterID: here.ClusterID, Index: here.Index + 1_000_000},
	} {
		_, err := c.watchTo(client, lease.WatchRequest{After: after}, 1<<62)
		invalid, ok := errors.AsType[*lease.InvalidError](err)
		if !ok || invalid.Field != "after" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := c.watchTo(client, lease.WatchRequest{Key: "a\x00"}, 1)
	if invalid, ok := errors.AsType[*lease.InvalidError](err); !ok || invalid.Field != "key" {
		t.Errorf("a bad key: %v", err)
	}
}

// TestListingAndChangesMakeTheState writes to more keys than fit in a page while
// watchers begin with a listing, from every node.
func TestListingAndChangesMakeTheState(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	ctx, stop := context.WithCancel(c.within(time.Minute))
	defer stop()
	var writers, watchers sync.WaitGroup
	write := func(req lease.AcquireRequest) {
		a, err := client.Acquire(ctx, req)
		if err == nil && rand.N(2) == 0 {
			_, _ = client.Release(ctx, lease.ReleaseRequest{Key: req.Key, Owner: req.Owner, Epoch: a.Record.Epoch})
		}
	}
	const keys, shards = 2500, 50
	for shard := range shards {
		writers.Go(func() {
			for i := shard; i < keys; i += shards {
				write(lease.AcquireRequest{Key: fmt.Sprintf("k/%05d", i), Owner: "o", TTL: time.Minute})
			}
			for ctx.Err() == nil {
				write(lease.AcquireRequest{Key: fmt.Sprintf("k/%05d", shard+shards*rand.N(keys/shards)), Owner: "o", TTL: lease.MinTTL * time.Duration(1+rand.N(100))})
			}
		})
	}
	c.eventually("more keys than fit in two pages", func(ctx context.Context) bool {
		page, err := client.List(ctx, lease.ListRequest{Prefix: "k/024"})
		return err == nil && len(page.Answers) > 0
	})
	var synced, end atomic.Uint64
	var told [3][2]*watched
	for node := range told {
		for selection := range told[node] {
			w := &watched{}
			told[node][selection] = w
			reader := c.dial(node)
			watchers.Go(func() {
				req := lease.WatchRequest{Prefix: "k/", Sync: true, Renewals: true, Selection: lease.Selection(selection)}
				for u, err := range reader.Watch(c.within(time.Minute), req) {
					if err != nil {
						t.Error(err)
						return
					}
					if w.take(u); u.Synced {
						synced.Add(1)
					}
					if e := end.Load(); e > 0 && w.position.Index >= e {
						return
					}
				}
			})
		}
	}
	c.eventually("all have synced", func(context.Context) bool { return synced.Load() == 6 || t.Failed() })
	stop()
	writers.Wait()
	final := map[string]lease.Record{}
	req := lease.ListRequest{Prefix: "k/", PageSize: lease.MaxPageSize}
	for more := true; more; more = req.PageToken != "" {
		page, err := client.List(c.within(20*time.Second), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Answers {
			final[a.Record.Key] = a.Record
		}
		req.PageToken = page.NextPageToken
	}
	end.Store(c.here(client).Index)
	watchers.Wait()
	for node := range told {
		for selection, w := range told[node] {
			c.checkListing(w, final, lease.Selection(selection))
		}
	}
}

// checkListing holds that the events go on from the listing, and that both together
// make the final state.
func (c *cluster) checkListing(w *watched, final map[string]lease.Record, selection lease.Selection) {
	c.t.Helper()
	c.t.Logf("%d records at %d, %d events", len(w.records), w.synced.Index, len(w.events))
	if w.synced.Index == 0 || len(w.records) == 0 {
		c.t.Error("the listing was not completed")
	}
	state := maps.Clone(w.records)
	for _, e := range w.events {
		before := state[e.Record.Key]
		if selection == lease.HeldOnly && before.Epoch == 0 {
			before = e.Record // it was left out
			before.Epoch -= 1
			before.LeaseUntil = 0
		}
		switch {
		case e.Index <= w.synced.Index:
			c.t.Errorf("%+v after the listing of %v", e, w.synced)
		case e.Kind == lease.Acquired && e.Record.Epoch != before.Epoch+1,
			e.Kind != lease.Acquired && e.Record.Epoch != before.Epoch,
			e.Kind == lease.Acquired && !before.OverAt(e.At),
			e.Kind == lease.Expired && !reflect.DeepEqual(e.Record, before):
			c.t.Errorf("%+v comes after %+v", e, before)
		}
		state[e.Record.Key] = e.Record
	}
	for key, r := range final {
		if got, told := state[key]; !reflect.DeepEqual(got, r) && (told || selection == lease.AllRecords) {
			c.t.Errorf("%s is %+v, and in the end %+v", key, got, r)
		}
	}
}

// TestWatchGoesOnThroughFailovers has leaders and the nodes that are watched closed and
// started again, while keys live: each watch tells exactly their history.
func TestWatchGoesOnThroughFailovers(t *testing.T) {
	c := startCluster(t, 3)
	client := c.dial()
	start := c.here(client)
	ctx, stop := context.WithCancel(c.within(2 * time.Minute))
	defer stop()
	var watchers, writers sync.WaitGroup
	var end atomic.Uint64
	var told [4]*watched
	for i := range told {
		told[i] = &watched{}
		reader := c.dial()
		watchers.Go(func() {
			for u, err := range reader.Watch(c.within(2*time.Minute), lease.WatchRequest{Prefix: "k/", Renewals: true, After: start}) {
				if err != nil {
					t.Error(err)
					return
				}
				told[i].take(u)
				if e := end.Load(); e > 0 && told[i].position.Index >= e {
					return
				}
			}
		})
	}
	const keys = 40
	for i := range keys {
		writers.Go(func() {
			key := fmt.Sprintf("k/%d", i)
			for n := 0; n < 8 && ctx.Err() == nil; n++ {
				a, err := client.Acquire(ctx, lease.AcquireRequest{Key: key, Owner: fmt.Sprint("o", n), TTL: lease.MinTTL * time.Duration(1+rand.N(10))})
				if err != nil {
					continue // held: by what has not ended yet
				}
				if rand.N(2) == 0 {
					_, _ = client.Renew(ctx, lease.RenewRequest{Key: key, Owner: a.Record.Owner, Epoch: a.Record.Epoch, TTL: time.Second})
				}
				if rand.N(2) == 0 {
					_, _ = client.Release(ctx, lease.ReleaseRequest{Key: key, Owner: a.Record.Owner, Epoch: a.Record.Epoch})
				}
				select {
				case <-time.After(time.Duration(rand.N(800)) * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	for n := range 3 {
		i := c.leader()
		if n == 2 {
			i = (i + 1) % 3
		}
		c.stop(i)
		c.leader()
		c.start(i)
	}
	writers.Wait()
	end.Store(c.here(client).Index)
	watchers.Wait()
	for _, w := range told {
		c.checkHistory(until(w.events, end.Load()), start.Index, keysOf("k", keys))
	}
	if len(told[0].events) < keys {
		t.Errorf("%d events only", len(told[0].events))
	}
}

// TestWatchOfNothingKept begins where nothing is kept any more, with and without a
// listing instead.
func TestWatchOfNothingKept(t *testing.T) {
	c := newCluster(t, 3)
	c.change = func(_ *node.Config, parts *node.Parts) { parts.Feed = feed.Bounds{Events: 50} }
	c.startAll()
	client := c.dial()
	start := c.here(client)
	c.live(client, "k", 60)
	_, err := c.watchTo(client, lease.WatchRequest{After: start}, 1<<62)
	compacted, ok := errors.AsType[*lease.CompactedError](err)
	if !ok || compacted.After != start || compacted.Oldest.Index <= start.Index || compacted.Oldest.ClusterID != start.ClusterID {
		t.Fatalf("got %v", err)
	}
	w := c.mustWatchTo(client, lease.WatchRequest{After: start, Sync: true, Prefix: "k/"}, compacted.Oldest.Index)
	if len(w.records) != 60 || w.synced.Index == 0 {
		t.Errorf("%d records at %v", len(w.records), w.synced)
	}
	for again := true; again; { // the last leases end, and push out one or the other
		w, err = c.watchTo(client, lease.WatchRequest{After: compacted.Oldest}, c.here(client).Index)
		if _, again = errors.AsType[*lease.CompactedError](err); again {
			errors.As(err, &compacted)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if len(w.events) < 40 {
		t.Errorf("%d events after the oldest position", len(w.events))
	}
}
