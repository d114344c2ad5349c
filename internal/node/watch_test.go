package node_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/internal/node"
	"github.com/leasenode/leasenode/lease"
)

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
