package api_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// feedState is a fake node's records as its feed looks at them.
type feedState struct{ *fakeNode }

func (s feedState) Leases(func(string, lease.Instant)) (uint64, lease.Instant, error) {
	now, _ := s.Clock()
	return s.AppliedIndex(), now, nil
}

func (s feedState) Records(keys []string) ([]lease.Record, uint64, error) {
	records := make([]lease.Record, len(keys))
	for i, key := range keys {
		view, _ := s.Get(key)
		records[i] = view.Record
	}
	return records, s.AppliedIndex(), nil
}

// startWatched runs a leader with a feed.
func startWatched(t *testing.T, bounds feed.Bounds, times api.Watching) *running {
	t.Helper()
	n := startWith(t, "n1", func(f *fakeNode, node *api.Node) {
		f.feed, node.Watching = feed.Open(feedState{f}, bounds), times
		f.leads, f.leader, f.applied = true, api.Leader{ID: "n1", APIAddr: "n1:7201"}, 0
	})
	t.Cleanup(n.feed.Close)
	return n
}

// happen has an entry with changes of records.
func (f *fakeNode) happen(changes ...feed.Change) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied++
	for _, c := range changes {
		at, found := slices.BinarySearchFunc(f.records, c.After.Key, func(r lease.Record, key string) int { return strings.Compare(r.Key, key) })
		if !found {
			f.records = slices.Insert(f.records, at, lease.Record{})
		}
		f.records[at] = c.After
	}
	f.feed.Add([]feed.Entry{{Index: f.applied, Now: f.now, Changes: changes}})
	return f.applied
}

func granted(key string, attributes map[string]string) feed.Change {
	return feed.Change{Op: lease.OpAcquire, Before: lease.Record{Key: key}, After: lease.Record{Key: key, Owner: "o", Epoch: 1, LeaseUntil: at(1_000_000_000), Attributes: attributes}}
}

func (n *running) watch(t *testing.T, req *leasepb.WatchRequest) grpc.ServerStreamingClient[leasepb.WatchResponse] {
	t.Helper()
	stream, _ := n.watchFor(t, req)
	return stream
}

// watchFor begins a watch that ends when cancel is called.
func (n *running) watchFor(t *testing.T, req *leasepb.WatchRequest) (stream grpc.ServerStreamingClient[leasepb.WatchResponse], cancel context.CancelFunc) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	t.Cleanup(cancel)
	stream, err := n.leases.Watch(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	return stream, cancel
}

func take(t *testing.T, stream grpc.ServerStreamingClient[leasepb.WatchResponse]) lease.WatchUpdate {
	t.Helper()
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	u, err := wire.UpdateFromProto(m)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// drain reads until the stream fails, and returns the last position.
func drain(stream grpc.ServerStreamingClient[leasepb.WatchResponse]) (last lease.Position, err error) {
	for {
		m, err := stream.Recv()
		if err != nil {
			return last, wire.FromCall(err, wire.Reads)
		}
		if m.GetPosition() != nil {
			last = wire.PositionFromProto(m.GetPosition())
		}
	}
}

func position(index uint64) lease.Position { return lease.Position{ClusterID: "c-1", Index: index} }

func TestWatchTellsItsPositionAtOnceAndWhenNothingHappens(t *testing.T) {
	n := startWatched(t, feed.Bounds{}, api.Watching{Mark: 50 * time.Millisecond})
	n.happen(granted("before", nil))
	stream := n.watch(t, &leasepb.WatchRequest{})
	if u := take(t, stream); u.Position != position(1) || len(u.Events) > 0 || u.Now != at(1_000_000) {
		t.Errorf("began with %+v", u)
	}
	n.happen(granted("k", map[string]string{"a": "b"}))
	if u := take(t, stream); u.Position != position(2) || len(u.Events) != 1 || !reflect.DeepEqual(u.Events[0].Record, granted("k", map[string]string{"a": "b"}).After) {
		t.Errorf("got %+v", u)
	}
	n.happen()
	for u := take(t, stream); u.Position != position(3); u = take(t, stream) {
		if u.Position != position(2) || len(u.Events) > 0 {
			t.Fatalf("got %+v", u)
		}
	}
	n.locked(func() { n.leads, n.leader = false, api.Leader{} })
	if _, err := drain(stream); !errors.Is(err, lease.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a leader: %v", err)
	}
	if _, err := drain(n.watch(t, &leasepb.WatchRequest{})); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("begun without a leader: %v", err)
	}
	if got := n.watch(t, &leasepb.WatchRequest{After: wire.PositionToProto(position(1))}); len(take(t, got).Events) != 1 {
		t.Error("what is here needs no leader")
	}
}

func TestEntryThatIsTooLargeForAMessageHasOnePosition(t *testing.T) {
	n := startWatched(t, feed.Bounds{}, api.Watching{})
	stream := n.watch(t, &leasepb.WatchRequest{})
	take(t, stream)
	changes := make([]feed.Change, 25_000)
	for i := range changes {
		changes[i] = granted(fmt.Sprintf("%05d", i), nil)
	}
	n.happen(changes...)
	var events []lease.Event
	for messages := 1; ; messages++ {
		u := take(t, stream)
		events = append(events, u.Events...)
		if u.Position == (lease.Position{}) {
			continue
		}
		if u.Position != position(1) || messages < 3 || len(events) != len(changes) {
			t.Errorf("%d messages with %d events up to %v", messages, len(events), u.Position)
		}
		break
	}
	for i, e := range events {
		if e.Record.Key != changes[i].After.Key {
			t.Fatalf("event %d is of %s", i, e.Record.Key)
		}
	}
}

func TestWhoDoesNotReadIsCutOff(t *testing.T) {
	large := map[string]string{"a": strings.Repeat("x", 4000)}
	for name, c := range map[string]struct {
		bounds  feed.Bounds
		times   api.Watching
		entries int
	}{
		"what it has not read is gone": {feed.Bounds{Events: 100}, api.Watching{}, 20_000},
		"it takes no message":          {feed.Bounds{}, api.Watching{Send: 100 * time.Millisecond}, 6000}, // all of them are kept
	} {
		t.Run(name, func(t *testing.T) {
			n := startWatched(t, c.bounds, c.times)
			var streams []grpc.ServerStreamingClient[leasepb.WatchResponse]
			// A client is in this process, too: its windows must not grow, as what is in them
			// would be counted with what the node keeps.
			n.leases = leasepb.NewLeaseServiceClient(connect(t, strings.TrimPrefix(n.public.Target(), "passthrough:///"), grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10)))
			for range 20 {
				streams = append(streams, n.watch(t, &leasepb.WatchRequest{}))
				take(t, streams[len(streams)-1])
			}
			before := liveHeap()
			for i := range c.entries {
				n.happen(granted(fmt.Sprint(i%100), large))
			}
			if err := n.feed.Await(within(t), uint64(c.entries)); err != nil {
				t.Fatal(err)
			}
			if c.times.Send > 0 {
				eventually(t, "all are cut off", func() bool { return gauge(t, n, "leasenode_watchers_cut_total") == 20 })
			}
			grown := int64(liveHeap()) - int64(before)
			t.Logf("after %d MB of events that 20 watchers have not read, the heap has %d MB more", c.entries*4/1000, grown>>20)
			// What is kept once and the room for messages are some 90 MB, and this process has
			// the clients, too. A queue for each would take 20 times what was told.
			if grown > 200<<20 {
				t.Error("that is more than what is kept and what is on its way")
			}
			for _, stream := range streams {
				last, err := drain(stream)
				slow, ok := errors.AsType[*lease.TooSlowError](err)
				// A message that was not taken in time may have come in the end.
				if !ok || c.times.Send == 0 && last.Index > 0 && slow.Last != last || slow.Last.ClusterID != "c-1" {
					t.Fatalf("after %v: %v", last, err)
				}
			}
			if cut, now := gauge(t, n, "leasenode_watchers_cut_total"), gauge(t, n, "leasenode_watchers"); cut != 20 || now != 0 {
				t.Errorf("%v were cut off, %v are left", cut, now)
			}
		})
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // the first leaves what is pooled
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func gauge(t *testing.T, n *running, name string) float64 {
	t.Helper()
	families, err := n.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue() + family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}

// TestListingIsOneState has records change between the pages of a listing: behind, at
// and before where the listing stands.
func TestListingIsOneState(t *testing.T) {
	n := startWatched(t, feed.Bounds{}, api.Watching{})
	var changes []feed.Change
	for i := range 2500 {
		changes = append(changes, granted(fmt.Sprintf("k/%04d", i), nil))
	}
	n.happen(changes...)
	pages := 0
	n.locked(func() {
		n.listed = func() {
			pages++
			again := func(key string, epoch uint64) feed.Change {
				c := granted(key, nil)
				c.Before, c.After.Epoch = c.After, epoch
				if key == "k/0000" {
					c.Op = lease.OpRenew
				}
				return c
			}
			n.happen(again("k/0000", uint64(pages+1)), again("k/1500", uint64(pages+1)), again("k/2499", uint64(pages+1)), granted(fmt.Sprintf("k/0000/%d", pages), nil), granted(fmt.Sprintf("z/%d", pages), nil))
		}
	})
	stream := n.watch(t, &leasepb.WatchRequest{Prefix: []byte("k/"), Sync: true})
	records := map[string]lease.Record{}
	var u lease.WatchUpdate
	for !u.Synced {
		u = take(t, stream)
		for _, r := range u.Records {
			records[r.Key] = r
		}
		if len(u.Events) > 0 || !u.Synced && u.Position != (lease.Position{}) {
			t.Fatalf("within the listing: %+v", u)
		}
	}
	if pages < 3 || u.Position.Index <= 1 {
		t.Fatalf("%d pages up to %v", pages, u.Position)
	}
	// The last page was of the state before the change that followed it.
	want := map[string]lease.Record{}
	for _, c := range changes {
		want[c.After.Key] = c.After
	}
	for i := 1; i < pages; i++ {
		for _, key := range []string{"k/0000", "k/1500", "k/2499"} {
			r := want[key]
			r.Epoch = uint64(i + 1)
			want[key] = r
		}
		want[fmt.Sprintf("k/0000/%d", i)] = granted(fmt.Sprintf("k/0000/%d", i), nil).After
	}
	if u.Position != position(uint64(pages)) || !maps.EqualFunc(records, want, func(a, b lease.Record) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("at %v: %d records, want %d", u.Position, len(records), len(want))
	}
	if next := take(t, stream); len(next.Events) != 3 || next.Events[0].Index != u.Position.Index+1 {
		t.Errorf("then came %+v", next)
	}
}

func TestWatchesAreRefused(t *testing.T) {
	n := startWatched(t, feed.Bounds{Events: 10, Watchers: 1}, api.Watching{})
	for i := range 30 {
		n.happen(granted(fmt.Sprint(i), nil))
	}
	if err := n.feed.Await(within(t), 30); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		req  *leasepb.WatchRequest
		code lease.Code
		grpc codes.Code
	}{
		"another cluster":    {&leasepb.WatchRequest{After: &leasepb.Position{ClusterId: []byte("c-2"), Index: 30}}, lease.CodeInvalid, codes.InvalidArgument},
		"the future":         {&leasepb.WatchRequest{After: &leasepb.Position{ClusterId: []byte("c-1"), Index: 31}}, lease.CodeInvalid, codes.InvalidArgument},
		"an empty position":  {&leasepb.WatchRequest{After: &leasepb.Position{}}, lease.CodeInvalid, codes.InvalidArgument},
		"a listing too":      {&leasepb.WatchRequest{After: &leasepb.Position{ClusterId: []byte("c-1"), Index: 30}, Sync: true}, lease.CodeInvalid, codes.InvalidArgument},
		"a key and a prefix": {&leasepb.WatchRequest{Key: []byte("k"), Prefix: []byte("k")}, lease.CodeInvalid, codes.InvalidArgument},
		"a bad key":          {&leasepb.WatchRequest{Key: []byte("\xff")}, lease.CodeInvalid, codes.InvalidArgument},
		"a long prefix":      {&leasepb.WatchRequest{Prefix: make([]byte, 513)}, lease.CodeInvalid, codes.InvalidArgument},
		"the past":           {&leasepb.WatchRequest{After: &leasepb.Position{ClusterId: []byte("c-1"), Index: 19}}, lease.CodeCompacted, codes.OutOfRange},
	} {
		_, err := n.watch(t, c.req).Recv()
		if wantCode(t, err, wire.Reads, c.code); status.Code(err) != c.grpc {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := take(t, n.watch(t, &leasepb.WatchRequest{After: wire.PositionToProto(position(20))})); len(got.Events) != 10 {
		t.Errorf("after the oldest: %+v", got)
	}
	_, err := n.watch(t, &leasepb.WatchRequest{}).Recv()
	wantCode(t, err, wire.Reads, lease.CodeExhausted)
	if got := counted(t, n, "LeaseService/Watch", "COMPACTED"); got != 1 {
		t.Errorf("counted %v", got)
	}
	stream, err := leasepb.NewLeaseServiceClient(n.peer).Watch(within(t), &leasepb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantCode(t, err, wire.Reads, lease.CodeUnavailable)
}

// TestFollowerBeginsWhereTheLeaderIs has a follower that is behind begin a watch.
func TestFollowerBeginsWhereTheLeaderIs(t *testing.T) {
	leader := startWatched(t, feed.Bounds{}, api.Watching{})
	follower := startWith(t, "n2", func(f *fakeNode, _ *api.Node) {
		f.feed, f.leader, f.applied, f.peers["n1"] = feed.Open(feedState{f}, feed.Bounds{}), api.Leader{ID: "n1"}, 0, leader.peer
	})
	t.Cleanup(follower.feed.Close)
	leader.happen(granted("k", nil))
	stream := follower.watch(t, &leasepb.WatchRequest{})
	began := make(chan lease.WatchUpdate)
	go func() { began <- take(t, stream) }()
	select {
	case u := <-began:
		t.Fatalf("began with %+v", u)
	case <-time.After(100 * time.Millisecond):
	}
	follower.happen(granted("k", nil))
	if u := <-began; u.Position != position(1) || len(u.Events) > 0 {
		t.Errorf("began with %+v", u)
	}
}
