package api_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/peerpb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm/feed"
	"github.com/leasenode/leasenode/lease"
)

// TestWatchEndsWithoutALeader holds what clients are promised: a message at least every 5
// seconds, and the end when no leader is known for 4 to 8 seconds.
func TestWatchEndsWithoutALeader(t *testing.T) {
	for offset := time.Duration(0); offset < 4*time.Second; offset += 700 * time.Millisecond {
		t.Run(offset.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := startInBubble(t, feed.Bounds{}, api.Watching{}, func(*fakeNode) {})
				client, _ := n.client()
				stream, _ := n.begin(client, &leasepb.WatchRequest{})
				ended := make(chan time.Time, 1)
				go func() {
					last := time.Now()
					for {
						_, err := stream.Recv()
						if silent := time.Since(last); silent > 5*time.Second {
							t.Errorf("silent for %v", silent)
						}
						if last = time.Now(); err != nil {
							if err := wire.FromCall(err, wire.Reads); !errors.Is(err, lease.ErrUnavailable) {
								t.Errorf("ended with %v", err)
							}
							ended <- last
							return
						}
					}
				}()
				leads := func(does bool) {
					n.locked(func() {
						if n.leads, n.leader = does, (api.Leader{}); does {
							n.leader = api.Leader{ID: "n1"}
						}
					})
				}
				// Two outages, each seen at one mark, with events after the first: no end.
				time.Sleep(3*time.Second + offset/2)
				leads(false)
				time.Sleep(3900 * time.Millisecond)
				leads(true)
				for i := range 20 {
					n.happen(granted(fmt.Sprint(i), nil))
					time.Sleep(900 * time.Millisecond)
				}
				leads(false)
				time.Sleep(3900 * time.Millisecond)
				leads(true)
				time.Sleep(6*time.Second + offset)
				select {
				case <-ended:
					t.Fatal("ended with a leader")
				default:
				}
				leads(false)
				lost := time.Now()
				if took := (<-ended).Sub(lost); took < 4*time.Second || took > 8*time.Second {
					t.Errorf("ended %v after the leader was lost", took)
				}
			})
		})
	}
}

// leaderAsked is a leader that takes its time to say how far it is.
type leaderAsked struct {
	grpc.ClientConnInterface
	answers chan uint64
}

func (l leaderAsked) Invoke(ctx context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	select {
	case index := <-l.answers:
		state := reply.(*peerpb.StateResponse)
		state.Id, state.Role, state.Healthy, state.AppliedIndex = "n1", string(api.RoleLeader), true, index
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestWhoWaitsForARoundCanBeCalledOff has three watches begin while the leader is being
// asked for another, and the first of them given up: it ends at once, and the other two
// are answered by one more question, asked after they came.
func TestWhoWaitsForARoundCanBeCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan uint64)
		n := startInBubble(t, feed.Bounds{}, api.Watching{}, func(f *fakeNode) {
			f.id, f.leads, f.peers["n1"] = "n2", false, leaderAsked{answers: answers}
		})
		client, _ := n.client()
		begin := func() (grpc.ServerStreamingClient[leasepb.WatchResponse], context.CancelFunc) {
			stream, cancel := n.begin(client, &leasepb.WatchRequest{})
			synctest.Wait()
			return stream, cancel
		}
		asks, _ := begin()
		_, giveUp := begin()
		var waits []grpc.ServerStreamingClient[leasepb.WatchResponse]
		for range 2 {
			stream, _ := begin()
			waits = append(waits, stream)
		}
		giveUp()
		synctest.Wait()
		if left := gauge(t, n.running, "leasenode_watchers"); left != 3 {
			t.Errorf("%v watches are left while the leader is being asked, want 3", left)
		}
		answers <- 0
		take(t, asks)
		answers <- 0
		for _, stream := range waits {
			take(t, stream)
		}
	})
}

// TestPositionComesBeforeAnyEvent has an entry happen just before the first message is
// made, loses the stream in the midst of that entry, and goes on from the first message.
func TestPositionComesBeforeAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 25_000
		var changes []feed.Change
		for i := range events {
			changes = append(changes, granted(fmt.Sprintf("%05d", i), nil))
		}
		n := startInBubble(t, feed.Bounds{}, api.Watching{}, func(*fakeNode) {})
		n.happen(granted("before", nil))
		synctest.Wait()
		// The leader is named in the first message, and asked for when that is made.
		n.locked(func() {
			n.named = func() {
				n.happen(changes...)
				if err := n.feed.Await(t.Context(), 2); err != nil {
					t.Error(err)
				}
			}
		})
		client, _ := n.client()
		stream, cancel := n.begin(client, &leasepb.WatchRequest{})
		began := time.Now()
		first := take(t, stream)
		if first.Position != position(1) || len(first.Events) > 0 || time.Since(began) > 0 {
			t.Fatalf("the first message is at %v and has %d events, after %v", first.Position, len(first.Events), time.Since(began))
		}
		if part := take(t, stream); part.Position != (lease.Position{}) || len(part.Events) == 0 || len(part.Events) == events {
			t.Fatalf("the second message is at %v and has %d events", part.Position, len(part.Events))
		}
		cancel()
		again, _ := n.begin(client, &leasepb.WatchRequest{After: wire.PositionToProto(first.Position)})
		for seen := 0; ; {
			u := take(t, again)
			for _, e := range u.Events {
				if want := changes[seen].After.Key; e.Record.Key != want {
					t.Fatalf("event %d is of %q, want %q", seen, e.Record.Key, want)
				}
				seen++
			}
			if u.Position == (lease.Position{}) {
				continue
			}
			if seen != events || u.Position != position(2) {
				t.Errorf("%d events up to %v", seen, u.Position)
			}
			return
		}
	})
}

// TestFirstMessageHasAPositionWhileMuchHappens begins watches beside a writer.
func TestFirstMessageHasAPositionWhileMuchHappens(t *testing.T) {
	n := startWatched(t, feed.Bounds{}, api.Watching{})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				if err := n.feed.Await(t.Context(), n.happen(granted("k", nil))); err != nil {
					return
				}
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	for range 30 {
		stream, cancel := n.watchFor(t, &leasepb.WatchRequest{})
		first := take(t, stream)
		if first.Position == (lease.Position{}) || len(first.Events) > 0 {
			t.Fatalf("the first message is at %v and has %d events", first.Position, len(first.Events))
		}
		if next := take(t, stream); len(next.Events) == 0 || next.Events[0].Index != first.Position.Index+1 {
			t.Fatalf("after %v came %+v", first.Position, next)
		}
		cancel()
	}
}
