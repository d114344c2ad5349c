package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasenode/leasenode/lease"
)

// toldWatch is a watch that tells what a test says, and what it was asked.
type toldWatch struct {
	updates []lease.WatchUpdate
	err     error // after them; nil to wait for the end of the context
	asked   *lease.WatchRequest
}

func (w toldWatch) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	if w.asked != nil {
		*w.asked = req
	}
	return func(yield func(lease.WatchUpdate, error) bool) {
		for _, u := range w.updates {
			if !yield(u, nil) {
				return
			}
		}
		err := w.err
		if err == nil {
			<-ctx.Done()
			err = fmt.Errorf("watch: %w: %w", lease.ErrUnavailable, context.Cause(ctx))
		}
		yield(lease.WatchUpdate{}, err)
	}
}

func toldUpdates() []lease.WatchUpdate {
	at := func(index uint64) lease.Position { return lease.Position{ClusterID: "c1", Index: index} }
	event := func(kind lease.EventKind, index uint64) lease.Event {
		return lease.Event{Kind: kind, Index: index, At: lease.InstantOfMillis(5), Record: lease.Record{Key: "k", Owner: "an owner", Epoch: 3, LeaseUntil: lease.InstantOfMillis(7), ForgottenAtEpoch: 2, Attributes: map[string]string{"a": "b"}}}
	}
	return []lease.WatchUpdate{
		{Reset: true, Records: []lease.Record{
			{Key: "over", Owner: "o", Epoch: 1, LeaseUntil: lease.InstantOfMillis(4)},
			{Key: "released", Owner: "o", Epoch: 1, LeaseUntil: lease.InstantOfMillis(9)},
			{Key: "k", Owner: "before", Epoch: 1, LeaseUntil: lease.InstantOfMillis(9)},
		}},
		{Records: []lease.Record{{Key: "k", Owner: "o", Epoch: 2, LeaseUntil: lease.InstantOfMillis(6)}, {Key: "released", Owner: "o", Epoch: 1, LeaseUntil: lease.InstantOfMillis(3)}}},
		{Synced: true, Position: at(9), Now: lease.InstantOfMillis(4)},
		{Position: at(10)},
		{Events: []lease.Event{event(lease.Expired, 11), event(lease.Acquired, 11), event(lease.Renewed, 12)}, Position: at(12)},
		{Events: []lease.Event{event(lease.Forgotten, 13), event(lease.Released, 14)}},
	}
}

func TestWatchShapes(t *testing.T) {
	ended := &lease.CompactedError{After: lease.Position{ClusterID: "c1", Index: 14}, Oldest: lease.Position{ClusterID: "c1", Index: 20}}
	i := invocation{cluster: fakeCluster{Watcher: toldWatch{updates: toldUpdates(), err: ended}}}
	rest := `"key":"k","owner":"an owner","epoch":3,"at_ms":5,"lease_until_ms":7,"forgotten_at_epoch":2,"attributes":{"a":"b"}`
	got := i.run("watch", "-o", "json")
	check(t, "watch", got.stdout, `{"event":"listing"}
{"index":0,"event":"held","key":"k","owner":"o","epoch":2,"at_ms":0,"lease_until_ms":6,"forgotten_at_epoch":0,"attributes":{}}
{"event":"synced","index":9,"at_ms":4,"position":"c1:9"}
{"index":11,"event":"expired",`+rest+`}
{"index":11,"event":"acquired",`+rest+`,"position":"c1:11"}
{"index":12,"event":"renewed",`+rest+`,"position":"c1:12"}
{"index":13,"event":"forgotten",`+rest+`}
{"index":14,"event":"released",`+rest+`}
{"error":{"reason":"COMPACTED","message":"what came after position c1:14 is kept no longer (the oldest to go on from is c1:20): list what there is and watch from there","record":null}}
`)
	check(t, "code", got.code, exitFailed)
	got = i.run("watch")
	check(t, "watch", got.stdout, `INDEX     EVENT      KEY                       OWNER             EPOCH  ATTRIBUTES
these are held now:
-         held       k                         o                 2
that is all; from here on it is what happens:
11        expired    k                         "an owner"        3      a=b
11        acquired   k                         "an owner"        3      a=b
12        renewed    k                         "an owner"        3      a=b
13        forgotten  k                         "an owner"        3      a=b
14        released   k                         "an owner"        3      a=b
`)
}

func TestWatchAsksForWhatItWasTold(t *testing.T) {
	for args, want := range map[string]lease.WatchRequest{
		"watch":                             {Selection: lease.HeldOnly},
		"watch p --renewals --after c:1:42": {Prefix: "p", Renewals: true, After: lease.Position{ClusterID: "c:1", Index: 42}, Selection: lease.HeldOnly},
		"watch --key k --sync":              {Key: "k", Sync: true, Selection: lease.HeldOnly},
	} {
		var asked lease.WatchRequest
		invocation{cluster: fakeCluster{Watcher: toldWatch{err: lease.ErrUnavailable, asked: &asked}}}.run(strings.Fields(args)...)
		check(t, args, asked, want)
	}
	i := invocation{cluster: fakeCluster{Watcher: toldWatch{}}}
	for _, args := range []string{"watch --after x", "watch --after :1", "watch --after c:-1", "watch p --key k", "watch --key a\x00", "watch a b"} {
		check(t, args, i.run(strings.Split(args, " ")...).code, exitUsage)
	}
}

func TestWatchEndsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(context.Background())
		watch := toldWatch{updates: []lease.WatchUpdate{{Position: lease.Position{ClusterID: "c", Index: 1}}}}
		i := invocation{ctx: ctx, cluster: fakeCluster{Watcher: interrupting{watch, interrupt}}}
		got := i.run("watch", "--timeout", "1ms")
		if got.code != exitDone || got.stderr != "" || strings.Count(got.stdout, "\n") != 1 || !strings.HasPrefix(got.stdout, "INDEX ") {
			t.Errorf("interrupted: %+v", got)
		}
		got = invocation{cluster: fakeCluster{Watcher: toldWatch{}}}.run("watch", "--timeout", "10ms")
		if got.code != exitUnavailable || !strings.Contains(got.stderr, "no node has begun it in time") {
			t.Errorf("no node: %+v", got)
		}
	})
}

// interrupting interrupts once the watch has begun and the time for that is over.
type interrupting struct {
	toldWatch
	interrupt func()
}

func (w interrupting) Watch(ctx context.Context, req lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return func(yield func(lease.WatchUpdate, error) bool) {
		for u, err := range w.toldWatch.Watch(ctx, req) {
			if !yield(u, err) {
				return
			}
			w.interrupt()
		}
	}
}

// pausingWatch pauses before each update but the first.
type pausingWatch struct {
	updates int
	pause   time.Duration
}

func (w pausingWatch) Watch(ctx context.Context, _ lease.WatchRequest) iter.Seq2[lease.WatchUpdate, error] {
	return func(yield func(lease.WatchUpdate, error) bool) {
		for i := range w.updates {
			if i > 0 {
				time.Sleep(w.pause)
			}
			if !yield(lease.WatchUpdate{Position: lease.Position{ClusterID: "c", Index: uint64(i + 1)}}, nil) {
				return
			}
		}
		<-ctx.Done()
		yield(lease.WatchUpdate{}, context.Cause(ctx))
	}
}

func TestWatchSaysThatTheClusterDoesNotAnswer(t *testing.T) {
	const silent = "leasenode: the cluster has not answered for 7s (asked 127.0.0.1:7201, 127.0.0.1:7202, 127.0.0.1:7203); the watch goes on when it does\n"
	const again = "leasenode: the cluster answers again\n"
	for _, c := range []struct {
		watch pausingWatch
		end   time.Duration
		want  string
	}{
		{pausingWatch{10, 5 * time.Second}, 47 * time.Second, ""},
		{pausingWatch{3, 20 * time.Second}, 42 * time.Second, silent + again + silent + again},
		{pausingWatch{1, 0}, time.Minute, silent},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), c.end)
			defer cancel()
			got := invocation{ctx: ctx, cluster: fakeCluster{Watcher: c.watch}}.run("watch")
			check(t, "code", got.code, exitDone)
			check(t, "standard error", got.stderr, c.want)
		})
	}
}
