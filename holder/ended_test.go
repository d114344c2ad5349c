package holder_test

import (
	"context"
	"errors"
	"iter"
	"net"
	"testing"
	"time"

	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// endOf returns the error that a sequence ends with.
func endOf[T any](seq iter.Seq2[T, error]) (last error) {
	for _, err := range seq {
		last = err
	}
	return last
}

// cancelSoon cancels contexts, with a cause that may be nil.
func cancelSoon(cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
		return ctx, func() { timer.Stop(); cancel(nil) }
	}
}

// A watch that is served until its caller ends it has not failed: the error is the
// context's, and no word of the cluster.
func TestTheEndOfAContextIsNoFailureOfTheCluster(t *testing.T) {
	stopped := errors.New("stopped")
	for name, c := range map[string]struct {
		end    func(context.Context) (context.Context, context.CancelFunc)
		is     []error
		reason string
	}{
		"deadline": {
			func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeout(ctx, 100*time.Millisecond)
			},
			[]error{context.DeadlineExceeded},
			"context deadline exceeded",
		},
		"cancelled": {cancelSoon(nil), []error{context.Canceled}, "context canceled"},
		"cause":     {cancelSoon(stopped), []error{context.Canceled, stopped}, "stopped"},
	} {
		_, client := startWatchNodes(t, func(_ lease.WatchRequest, send func(lease.WatchUpdate)) error {
			send(lease.WatchUpdate{Position: placeAt(5)})
			return nil
		})
		ctx, cancel := c.end(t.Context())
		watched := endOf(client.Watch(ctx, lease.WatchRequest{Key: "k"}))
		cancel()
		ctx, cancel = c.end(t.Context())
		observed := endOf(client.Observe(ctx, "k"))
		cancel()
		for subject, err := range map[string]error{`watch "k"`: watched, `observe "k"`: observed} {
			if want := subject + ": the context has ended: " + c.reason; err == nil || err.Error() != want {
				t.Errorf("%s: got %v, want %s", name, err, want)
			}
			for _, is := range c.is {
				if !errors.Is(err, is) {
					t.Errorf("%s: %v is not %v", name, err, is)
				}
			}
			if lease.CodeOf(err) != "" {
				t.Errorf("%s: %v has the code %s", name, err, lease.CodeOf(err))
			}
		}
	}
}

// An error says first what was asked for and where, then what it means, and at last, in
// few words, why.
func TestErrorsOfTheWayBeginWithWhatWasDone(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := holder.Dial([]string{addr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ctx := func() context.Context { return within(t, 200*time.Millisecond) }
	_, renewed := c.Renew(ctx(), lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second})
	_, got := c.Get(ctx(), lease.GetRequest{Key: "k"})
	_, stale := c.Get(ctx(), lease.GetRequest{Key: "k", Consistency: lease.Stale})
	_, status := c.Status(ctx())
	const why = " (connection refused); given up: context deadline exceeded"
	for _, f := range []struct {
		err  error
		text string
	}{
		{renewed, `renew "k" at ` + addr + ": unavailable: certainly not done, try again" + why},
		{got, `get "k" at ` + addr + ": unavailable, try again" + why},
		{stale, `get "k": no answer from any endpoint, the latest asked is ` + addr + ": unavailable, try again" + why},
		{status, "status: no answer from any endpoint, the latest asked is " + addr + ": unavailable, try again" + why},
		{endOf(c.Watch(ctx(), lease.WatchRequest{Prefix: "k"})), `watch all that begins with "k" at ` + addr + ": unavailable, try again" + why},
		{endOf(c.Observe(ctx(), "k")), `observe "k" at ` + addr + ": unavailable, try again" + why},
	} {
		if f.err == nil || f.err.Error() != f.text {
			t.Errorf("got  %v\nwant %s", f.err, f.text)
		}
		if !errors.Is(f.err, lease.ErrUnavailable) || !errors.Is(f.err, context.DeadlineExceeded) {
			t.Errorf("%v is not unavailable, or not the context's", f.err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := endOf(c.Watch(ended, lease.WatchRequest{})); err == nil || err.Error() != "watch all keys: no node has answered; given up: context canceled" || !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("ended before it began: %v", err)
	}
}
