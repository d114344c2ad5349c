package holder_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"reflect"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// watchNode is a node as a watch sees one. serve answers each watch; the end of it is
// its own.
type watchNode struct {
	leasepb.UnimplementedLeaseServiceServer
	addr  string
	mu    sync.Mutex
	asked []lease.WatchRequest
	serve func(req lease.WatchRequest, send func(lease.WatchUpdate)) error
}

func (n *watchNode) Watch(p *leasepb.WatchRequest, stream grpc.ServerStreamingServer[leasepb.WatchResponse]) error {
	req, err := wire.WatchFromProto(p)
	if err == nil {
		n.mu.Lock()
		n.asked = append(n.asked, req)
		n.mu.Unlock()
		err = n.serve(req, func(u lease.WatchUpdate) { _ = stream.Send(wire.UpdateToProto(u)) })
	}
	if err == nil {
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	return wire.StatusOf(err, wire.Leader{}).Err()
}

func startWatchNodes(t *testing.T, serve ...func(req lease.WatchRequest, send func(lease.WatchUpdate)) error) ([]*watchNode, *holder.Client) {
	t.Helper()
	var nodes []*watchNode
	var endpoints []string
	for _, s := range serve {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n := &watchNode{addr: l.Addr().String(), serve: s}
		server := grpc.NewServer(grpc.WaitForHandlers(true))
		leasepb.RegisterLeaseServiceServer(server, n)
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(l) }()
		t.Cleanup(func() { server.Stop(); <-served })
		nodes, endpoints = append(nodes, n), append(endpoints, n.addr)
	}
	client, err := holder.Dial(endpoints)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return nodes, client
}

func watchContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func placeAt(index uint64) lease.Position { return lease.Position{ClusterID: "c", Index: index} }

func eventAt(index uint64, kind lease.EventKind, owner string, epoch uint64, until int64) lease.Event {
	return lease.Event{Kind: kind, Index: index, At: lease.InstantOfMillis(int64(index)), Record: lease.Record{Key: "k", Owner: owner, Epoch: epoch, LeaseUntil: lease.InstantOfMillis(until)}}
}

// TestWatchHasNoGapAndNoRepeat reads one log from three nodes that break off whenever
// they like, in the midst of an entry too, in every way there is.
func TestWatchHasNoGapAndNoRepeat(t *testing.T) {
	var log []lease.Event
	for index := uint64(1); index <= 60; index++ {
		for range rand.N(6) {
			log = append(log, eventAt(index, lease.Acquired, fmt.Sprint(len(log)), uint64(len(log)+1), 1_000_000))
		}
	}
	serve := func(req lease.WatchRequest, send func(lease.WatchUpdate)) error {
		left := 1 + rand.N(12)
		send(lease.WatchUpdate{Position: req.After})
		var u lease.WatchUpdate
		for i, e := range log {
			if e.Index <= req.After.Index {
				continue
			}
			u.Events = append(u.Events, e)
			if ends := i == len(log)-1 || log[i+1].Index != e.Index; ends && rand.N(2) == 0 || i == len(log)-1 {
				u.Position = placeAt(e.Index)
			} else if rand.N(3) > 0 {
				continue
			}
			send(u)
			u = lease.WatchUpdate{}
			if left--; left == 0 && i < len(log)-1 {
				return []error{lease.ErrUnavailable, &lease.TooSlowError{}, errors.New("a bug"), context.Canceled}[rand.N(4)]
			}
		}
		return nil
	}
	for range 5 {
		_, client := startWatchNodes(t, serve, serve, serve)
		var got []lease.Event
		for u, err := range client.Watch(watchContext(t), lease.WatchRequest{After: placeAt(0)}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, u.Events...)
			if n := len(got); n > 0 && u.Position.Index > 0 && u.Position.Index < got[n-1].Index {
				t.Fatalf("position %v after %+v", u.Position, got[n-1])
			}
			if u.Position.Index == log[len(log)-1].Index {
				break
			}
		}
		if !reflect.DeepEqual(got, log) {
			t.Fatalf("%d events, want %d", len(got), len(log))
		}
	}
}

// TestWatchAsksAllNodesBeforeItGivesUp has one node that has kept what the other two
// have not.
func TestWatchAsksAllNodesBeforeItGivesUp(t *testing.T) {
	gone := func(req lease.WatchRequest, send func(lease.WatchUpdate)) error {
		if req.Sync {
			send(lease.WatchUpdate{Records: []lease.Record{{Key: "k", Epoch: 7}}})
			send(lease.WatchUpdate{Synced: true, Position: placeAt(90)})
			return nil
		}
		return &lease.CompactedError{After: req.After, Oldest: placeAt(80)}
	}
	kept := func(_ lease.WatchRequest, send func(lease.WatchUpdate)) error {
		send(lease.WatchUpdate{Position: placeAt(50)})
		return nil
	}
	first := func(client *holder.Client, req lease.WatchRequest) (u lease.WatchUpdate, err error) {
		for u, err = range client.Watch(watchContext(t), req) {
			if !u.Reset {
				return u, err
			}
		}
		return u, err
	}
	_, client := startWatchNodes(t, gone, kept, gone)
	for range 5 {
		if u, err := first(client, lease.WatchRequest{After: placeAt(5)}); err != nil || u.Position != placeAt(50) {
			t.Fatalf("%+v, %v", u, err)
		}
	}
	_, client = startWatchNodes(t, gone, gone, gone)
	_, err := first(client, lease.WatchRequest{After: placeAt(5)})
	if want := (&lease.CompactedError{After: placeAt(5), Oldest: placeAt(80)}); !reflect.DeepEqual(err, error(want)) {
		t.Errorf("got %v", err)
	}
	if u, err := first(client, lease.WatchRequest{After: placeAt(5), Sync: true}); err != nil || !u.Synced || u.Position != placeAt(90) {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestWatchEndsWithAReason(t *testing.T) {
	nodes, client := startWatchNodes(t, func(lease.WatchRequest, func(lease.WatchUpdate)) error {
		return &lease.InvalidError{Field: "after"}
	})
	last := func(ctx context.Context, req lease.WatchRequest) (err error) {
		for _, err = range client.Watch(ctx, req) {
		}
		return err
	}
	for _, req := range []lease.WatchRequest{{}, {Key: "\x00"}, {Key: "k", Prefix: "k"}} {
		if err := last(watchContext(t), req); lease.CodeOf(err) != lease.CodeInvalid {
			t.Errorf("%+v: %v", req, err)
		}
	}
	if len(nodes[0].asked) != 1 {
		t.Errorf("asked %v", nodes[0].asked)
	}
	nodes[0].serve = func(lease.WatchRequest, func(lease.WatchUpdate)) error { return lease.ErrUnavailable }
	ctx, cancel := context.WithCancelCause(watchContext(t))
	stopped := errors.New("stopped")
	time.AfterFunc(50*time.Millisecond, func() { cancel(stopped) })
	if err := last(ctx, lease.WatchRequest{}); !errors.Is(err, lease.ErrUnavailable) || !errors.Is(err, stopped) {
		t.Errorf("stopped: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = client.Close() })
	if err := last(watchContext(t), lease.WatchRequest{}); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("closed: %v", err)
	}
}

// The node knows of a deadline, too, and may end the stream a moment before it: the end of
// the context is no failure of the cluster then.
func TestAStreamThatEndsJustBeforeItsContextIsNoFailure(t *testing.T) {
	told := false
	_, client := startWatchNodes(t, func(_ lease.WatchRequest, send func(lease.WatchUpdate)) error {
		if told {
			return nil
		}
		told = true
		send(lease.WatchUpdate{Position: placeAt(5)})
		return lease.ErrUnavailable
	})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var last error
	for _, err := range client.Watch(ctx, lease.WatchRequest{}) {
		last = err
	}
	if !errors.Is(last, context.DeadlineExceeded) || errors.Is(last, lease.ErrUnavailable) {
		t.Errorf("%v", last)
	}
}

// TestWatchLeavesANodeThatIsSilent has one node take the call and say nothing.
func TestWatchLeavesANodeThatIsSilent(t *testing.T) {
	silent := func(lease.WatchRequest, func(lease.WatchUpdate)) error { return nil }
	speaks := func(_ lease.WatchRequest, send func(lease.WatchUpdate)) error {
		send(lease.WatchUpdate{Position: placeAt(5)})
		return nil
	}
	_, client := startWatchNodes(t, silent, speaks)
	for range 2 { // it begins anywhere
		for u, err := range client.Watch(watchContext(t), lease.WatchRequest{}) {
			if err != nil || u.Position != placeAt(5) {
				t.Fatalf("%+v, %v", u, err)
			}
			break
		}
	}
}

// TestManyWatchesLeaveRoomForCalls has more watches than a server takes calls of one
// connection, and a call beside them.
func TestManyWatchesLeaveRoomForCalls(t *testing.T) {
	_, client := startWatchNodes(t, func(_ lease.WatchRequest, send func(lease.WatchUpdate)) error {
		send(lease.WatchUpdate{Position: placeAt(5)})
		return nil
	})
	ctx, stop := context.WithCancel(watchContext(t))
	var watches sync.WaitGroup
	begun := make(chan struct{}, 1200)
	for range 1200 {
		watches.Go(func() {
			for _, err := range client.Watch(ctx, lease.WatchRequest{}) {
				if err == nil {
					begun <- struct{}{}
				}
			}
		})
	}
	for range 1200 {
		select {
		case <-begun:
		case <-ctx.Done():
			t.Fatal("not all have begun")
		}
	}
	stop()
	watches.Wait()
}

func TestObserveTellsEachOwnerOnce(t *testing.T) {
	at := lease.InstantOfMillis
	round := 0
	serve := func(req lease.WatchRequest, send func(lease.WatchUpdate)) error {
		round++
		switch {
		case round == 1:
			send(lease.WatchUpdate{Synced: true, Position: placeAt(1), Now: at(1)})
			send(lease.WatchUpdate{Events: []lease.Event{eventAt(2, lease.Acquired, "a", 1, 100), eventAt(3, lease.Renewed, "a", 1, 200), eventAt(4, lease.Forgotten, "a", 1, 200)}, Position: placeAt(4)})
			send(lease.WatchUpdate{Events: []lease.Event{eventAt(201, lease.Expired, "a", 1, 200), eventAt(201, lease.Acquired, "b", 2, 300)}, Position: placeAt(201)})
			return lease.ErrUnavailable
		case !req.Sync:
			return &lease.CompactedError{After: req.After, Oldest: placeAt(400)}
		case round == 3: // the listing breaks off
			send(lease.WatchUpdate{Records: []lease.Record{{Key: "k", Owner: "void", Epoch: 9, LeaseUntil: at(1000)}}})
			return lease.ErrUnavailable
		case round == 4: // nothing has changed
			send(lease.WatchUpdate{Records: []lease.Record{{Key: "k", Owner: "b", Epoch: 2, LeaseUntil: at(500)}}, Synced: true, Position: placeAt(401), Now: at(401)})
			return lease.ErrUnavailable
		default:
			send(lease.WatchUpdate{Records: []lease.Record{{Key: "k", Owner: "c", Epoch: 4, LeaseUntil: at(900)}}, Synced: true, Position: placeAt(801), Now: at(801)})
			send(lease.WatchUpdate{Events: []lease.Event{eventAt(850, lease.Released, "c", 4, 850)}, Position: placeAt(850)})
			return nil
		}
	}
	_, client := startWatchNodes(t, serve)
	var got []string
	for answer, err := range client.Observe(watchContext(t), "k") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %d %v", answer.Record.Owner, answer.Record.Epoch, answer.Remaining))
		if answer.Record.Owner == "c" && answer.Remaining == 0 {
			break
		}
	}
	want := []string{" 0 0s", "a 1 98ms", "a 1 0s", "b 2 99ms", "c 4 99ms", "c 4 0s"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, err := range client.Observe(watchContext(t), "") {
		if lease.CodeOf(err) != lease.CodeInvalid {
			t.Errorf("no key: %v", err)
		}
	}
}
