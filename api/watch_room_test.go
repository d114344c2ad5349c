package api_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

const roomBytes = "leasenode_watch_bytes"

// large are changes of n records of some 4 KiB.
func large(round, n int) (changes []feed.Change) {
	for i := range n {
		c := granted(fmt.Sprintf("k/%03d", i), map[string]string{"a": strings.Repeat("x", 4000)})
		c.Before, c.After.Epoch = c.After, uint64(round)
		changes = append(changes, c)
	}
	return changes
}

// reading is a watch whose events are taken as they come.
type reading struct {
	mu     sync.Mutex
	events []lease.Event
	late   time.Duration // the longest that one took
	err    error
}

// read reads stream until it fails. begun is when each log entry was written.
func (r *reading) read(stream grpc.ServerStreamingClient[leasepb.WatchResponse], begun *sync.Map) {
	for {
		m, err := stream.Recv()
		r.mu.Lock()
		if r.err = err; err != nil {
			r.mu.Unlock()
			return
		}
		for _, e := range m.GetEvents() {
			if at, ok := begun.Load(e.GetIndex()); ok {
				r.late = max(r.late, time.Since(at.(time.Time)))
			}
			r.events = append(r.events, lease.Event{Index: e.GetIndex()})
		}
		r.mu.Unlock()
	}
}

// TestUnreadWatchesHaveNoMoreThanTheRoom has many watches, on many connections, that
// nobody reads, beside some that are read: those are told everything, soon, and nothing
// holds the writer up.
func TestUnreadWatchesHaveNoMoreThanTheRoom(t *testing.T) {
	t.Run("several on a connection", func(t *testing.T) { unreadWatches(t, 20, 4) })
	t.Run("one on a connection", func(t *testing.T) { unreadWatches(t, 40, 1) })
}

// unreadWatches has so many watches on each of so many connections. A message of theirs is
// a tenth of the room.
func unreadWatches(t *testing.T, connections, each int) {
	synctest.Test(t, func(t *testing.T) {
		const room, entries = 1 << 20, 60
		n := startInBubble(t, feed.Bounds{}, api.Watching{Bytes: room}, func(*fakeNode) {})
		var begun sync.Map
		var readers [3]reading
		var reads sync.WaitGroup
		var cancels []func()
		defer func() {
			for _, cancel := range cancels {
				cancel()
			}
			reads.Wait()
		}()
		for i := range readers {
			client, _ := n.client()
			stream, cancel := n.begin(client, &leasepb.WatchRequest{})
			reads.Go(func() { readers[i].read(stream, &begun) })
			cancels = append(cancels, cancel)
		}
		synctest.Wait()
		most := 0.0
		for round := range entries {
			if round == 3 { // the others have shown that they read
				for range connections {
					client, _ := n.client()
					for range each {
						n.begin(client, &leasepb.WatchRequest{})
					}
				}
				synctest.Wait()
			}
			before := time.Now()
			begun.Store(n.happen(large(round+1, 24)...), before)
			if took := time.Since(before); took > 0 {
				t.Errorf("the writer was held up for %v", took)
			}
			for range 4 {
				synctest.Wait()
				most = max(most, gauge(t, n.running, roomBytes))
				time.Sleep(25 * time.Millisecond)
			}
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		closed := gauge(t, n.running, "leasenode_watch_connections_closed_total")
		t.Logf("%.0f of %d bytes were on their way at most; %v connections were closed", most, room, closed)
		if most > room || most < room/2 {
			t.Errorf("%.0f bytes were on their way, with room for %d", most, room)
		}
		if closed < float64(connections)*3/4 || each > 1 && closed != float64(connections) {
			t.Errorf("%v connections of %d were closed", closed, connections)
		}
		for i := range readers {
			r := &readers[i]
			r.mu.Lock()
			if r.err != nil || len(r.events) != entries*24 || r.late > 2500*time.Millisecond {
				t.Errorf("reader %d: %d events, the latest after %v: %v", i, len(r.events), r.late, r.err)
			}
			t.Logf("a reader was told after %v at most", r.late)
			r.mu.Unlock()
		}
		// Those that are left are in nobody's way.
		left := gauge(t, n.running, "leasenode_watchers") - float64(len(readers))
		if left != (float64(connections)-closed)*float64(each) {
			t.Errorf("%v unread watches are left", left)
		}
	})
}

// TestRoomIsTakenUntilTheClientLetsGo holds that what gRPC keeps for a stream counts after
// its watch was cut off, and no longer than gRPC keeps it.
func TestRoomIsTakenUntilTheClientLetsGo(t *testing.T) {
	for name, letGo := range map[string]func(stream grpc.ServerStreamingClient[leasepb.WatchResponse], cancel func(), conn *grpc.ClientConn){
		"by reading": func(stream grpc.ServerStreamingClient[leasepb.WatchResponse], _ func(), _ *grpc.ClientConn) {
			_, err := drain(stream)
			if _, ok := errors.AsType[*lease.TooSlowError](err); !ok {
				t.Errorf("got %v", err)
			}
		},
		"by cancelling": func(_ grpc.ServerStreamingClient[leasepb.WatchResponse], cancel func(), _ *grpc.ClientConn) { cancel() },
		"by closing": func(_ grpc.ServerStreamingClient[leasepb.WatchResponse], _ func(), conn *grpc.ClientConn) {
			_ = conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startInBubble(t, feed.Bounds{}, api.Watching{}, func(*fakeNode) {})
				client, conn := n.client()
				stream, cancel := n.begin(client, &leasepb.WatchRequest{})
				synctest.Wait()
				n.happen(large(1, 24)...)
				time.Sleep(20 * time.Second)
				if cut := gauge(t, n.running, "leasenode_watchers_cut_total"); cut != 0 {
					t.Errorf("%v were cut off too soon", cut)
				}
				time.Sleep(20 * time.Second)
				cut, left := gauge(t, n.running, "leasenode_watchers_cut_total"), gauge(t, n.running, "leasenode_watchers")
				if kept := gauge(t, n.running, roomBytes); cut != 1 || left != 0 || kept < 90_000 || kept > 110_000 {
					t.Errorf("%v cut off, %v left, %v bytes kept", cut, left, kept)
				}
				letGo(stream, cancel, conn)
				synctest.Wait()
				if kept := gauge(t, n.running, roomBytes); kept != 0 {
					t.Errorf("%v bytes are kept for nobody", kept)
				}
			})
		})
	}
}

// TestConnectionHasItsShare has a connection with watches that nobody reads, and one that
// is read. Others are not concerned; and the one that is read goes on, elsewhere, since
// the connection is closed rather than left without room.
func TestConnectionHasItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 8 << 20 // and a share of 1 MiB
		n := startInBubble(t, feed.Bounds{}, api.Watching{Bytes: room}, func(*fakeNode) {})
		client, _ := n.client()
		for range 20 {
			n.begin(client, &leasepb.WatchRequest{Prefix: []byte("k/")})
		}
		beside, _ := n.begin(client, &leasepb.WatchRequest{Prefix: []byte("k/")})
		other, _ := n.client()
		apart, _ := n.begin(other, &leasepb.WatchRequest{Prefix: []byte("k/")})
		take(t, beside)
		take(t, apart)
		synctest.Wait()
		n.happen(large(1, 24)...)
		take(t, apart)
		synctest.Wait()
		if used := gauge(t, n.running, roomBytes); used > room/8+room/64 || used < room/16 {
			t.Errorf("one connection has %v bytes of %d", used, room)
		}
		began := time.Now()
		_, err := drain(beside)
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("it was left without room for %v: %v", took, err)
		}
		n.happen(large(2, 24)...)
		if u := take(t, apart); len(u.Events) != 24 {
			t.Errorf("got %+v", u)
		}
	})
}

// TestSmallMessagesDoNotWaitForLargeOnes fills what large messages may have, and has small
// ones take up the rest.
func TestSmallMessagesDoNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room = 1 << 20
		n := startInBubble(t, feed.Bounds{}, api.Watching{Bytes: room}, func(*fakeNode) {})
		var small []grpc.ServerStreamingClient[leasepb.WatchResponse]
		for range 20 {
			client, _ := n.client()
			n.begin(client, &leasepb.WatchRequest{Prefix: []byte("k/")})
			client, _ = n.client()
			stream, _ := n.begin(client, &leasepb.WatchRequest{Key: []byte("small")})
			take(t, stream)
			small = append(small, stream)
		}
		synctest.Wait()
		n.happen(large(1, 22)...) // nine of them leave little of what large ones may have
		synctest.Wait()
		if used := gauge(t, n.running, roomBytes); used < room*5/8 || used > room*7/8 {
			t.Errorf("the large ones take up %v bytes of %d", used, room)
		}
		began := time.Now()
		n.happen(granted("small", nil))
		for _, stream := range small {
			if u := take(t, stream); len(u.Events) != 1 || time.Since(began) > 0 {
				t.Errorf("after %v: %+v", time.Since(began), u)
			}
		}
	})
}

// TestUnreadListingsHaveNoMoreThanTheRoom is the same for watches that begin with a
// listing, beside one who reads it.
func TestUnreadListingsHaveNoMoreThanTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const room, connections, each, records = 1 << 20, 10, 20, 3000
		n := startInBubble(t, feed.Bounds{}, api.Watching{Bytes: room}, func(*fakeNode) {})
		var changes []feed.Change
		for i := range records {
			changes = append(changes, granted(fmt.Sprintf("k/%05d", i), map[string]string{"addr": strings.Repeat("x", 100)}))
		}
		n.happen(changes...)
		for range connections {
			client, _ := n.client()
			for range each {
				n.begin(client, &leasepb.WatchRequest{Sync: true})
			}
		}
		client, _ := n.client()
		stream, _ := n.begin(client, &leasepb.WatchRequest{Sync: true})
		began, seen := time.Now(), 0
		for u := take(t, stream); ; u = take(t, stream) {
			if used := gauge(t, n.running, roomBytes); used > room {
				t.Errorf("%v bytes were on their way, with room for %d", used, room)
			}
			if seen += len(u.Records); u.Synced {
				break
			}
		}
		if took := time.Since(began); seen != records || took > 15*time.Second {
			t.Errorf("%d records after %v", seen, took)
		}
	})
}

// TestListingEndsWhenItsChangesAreGone has a client that reads so slowly that what has
// changed since its first page is kept no longer: it is told at the next page.
func TestListingEndsWhenItsChangesAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startInBubble(t, feed.Bounds{Events: 5000}, api.Watching{}, func(*fakeNode) {})
		var changes []feed.Change
		for i := range 5000 {
			changes = append(changes, granted(fmt.Sprintf("k/%05d", i), map[string]string{"addr": strings.Repeat("x", 100)}))
		}
		n.happen(changes...)
		client, _ := n.client()
		stream, _ := n.begin(client, &leasepb.WatchRequest{Sync: true})
		seen := len(take(t, stream).Records)
		synctest.Wait()
		for i := range 6000 {
			n.happen(granted(fmt.Sprintf("z/%05d", i), nil))
		}
		synctest.Wait()
		for {
			m, err := stream.Recv()
			if err != nil {
				break
			}
			seen += len(m.GetRecords())
		}
		if cut := gauge(t, n.running, "leasenode_watchers_cut_total"); cut != 1 || seen > 2000 {
			t.Errorf("%v were cut off, after %d records", cut, seen)
		}
	})
}
