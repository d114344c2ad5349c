package holder_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

// errReset is the failure of a call whose answer was lost.
var errReset = status.Error(codes.Unavailable, "connection reset")

// loseAnswers has the node do its work and then lose the answers to the first n calls;
// after runs when each is lost.
func loseAnswers(b *backend, n int, after func()) {
	b.set(func() {
		start := b.calls
		b.fault = func(_ context.Context, call int, serve serveCall) (any, error) {
			resp, err := serve()
			if call-start <= n {
				after()
				return nil, errReset
			}
			return resp, err
		}
	})
}

func nothing() {}

func TestAnAcquireWhoseAnswerWasLostIsOneAttempt(t *testing.T) {
	for name, id := range map[string]string{"own id": "mine", "no id": ""} {
		nodes, _ := startCluster(t, 1)
		c := dial(t, nodes...)
		loseAnswers(nodes[0], 2, nothing)
		req := acquireK
		req.RequestID = id
		a := acquired(t, c, req)
		if a.Record.Epoch != 1 || a.Changed || grants(t, c) != 1 {
			t.Errorf("%s: got %+v and %d grants", name, a, grants(t, c))
		}
		ids := nodes[0].ids
		if len(ids) != 3 || ids[0] == "" || ids[1] != ids[0] || ids[2] != ids[0] || (id != "" && ids[0] != id) {
			t.Errorf("%s: the tries had the request ids %q", name, ids)
		}
	}
}

func TestTwoAcquiresWithoutAnIDAreTwoAttempts(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	c := dial(t, nodes...)
	acquired(t, c, acquireK)
	if _, err := c.Acquire(within(t, long), acquireK); lease.CodeOf(err) != lease.CodeHeld {
		t.Errorf("got %v", err)
	}
	if ids := nodes[0].ids; len(ids[0]) < 26 || ids[0] == ids[1] {
		t.Errorf("the request ids are %q", ids)
	}
}

func TestAGrantThatEndedBeforeItsAnswerBeginsAnew(t *testing.T) {
	nodes, clock := startCluster(t, 1)
	c := dial(t, nodes...)
	loseAnswers(nodes[0], 1, func() { clock.Advance(2 * time.Second) })
	if a := acquired(t, c, acquireK); a.Record.Epoch != 2 || !a.Changed {
		t.Errorf("got %+v, want a second grant", a)
	}
	if ids := nodes[0].ids; len(ids) != 3 || ids[1] != ids[0] || ids[2] == ids[0] {
		t.Errorf("the request ids are %q", ids)
	}

	own := lease.AcquireRequest{Key: "k2", Owner: "o", TTL: time.Second, RequestID: "mine"}
	loseAnswers(nodes[0], 1, func() { clock.Advance(2 * time.Second) })
	if _, err := c.Acquire(within(t, long), own); lease.CodeOf(err) != lease.CodeLost {
		t.Errorf("the caller's own attempt: got %v, want it lost", err)
	}
}

func TestAnewIsOnlyAfterATryThatMayHaveBeenDone(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	nodes[0].fault = func(context.Context, int, serveCall) (any, error) {
		return nil, wire.StatusOf(&lease.LostError{Record: lease.Record{Key: "k"}}, wire.Leader{}).Err()
	}
	_, err := dial(t, nodes...).Acquire(within(t, long), acquireK)
	if lease.CodeOf(err) != lease.CodeLost || nodes[0].count() != 1 {
		t.Errorf("got %v after %d calls", err, nodes[0].count())
	}
}

func TestALaterAnswerMakesAnUnknownTryDefinite(t *testing.T) {
	nodes, clock := startCluster(t, 1)
	c := dial(t, nodes...)
	acquired(t, c, acquireK)
	renew := lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second}
	release := lease.ReleaseRequest{Key: "k", Owner: "o", Epoch: 1}

	loseAnswers(nodes[0], 1, nothing)
	if _, err := c.Renew(within(t, long), renew); err != nil {
		t.Errorf("renew: %v", err)
	}
	loseAnswers(nodes[0], 1, nothing)
	if _, err := c.Forget(within(t, long), lease.ForgetRequest{Key: release.Key, Owner: release.Owner, Epoch: release.Epoch}); err != nil {
		t.Errorf("forget: %v", err)
	}
	loseAnswers(nodes[0], 1, nothing)
	if a, err := c.Release(within(t, long), release); err != nil || a.Changed {
		t.Errorf("release: %+v, %v", a, err)
	}
	loseAnswers(nodes[0], 1, func() { clock.Advance(time.Minute) })
	if _, err := c.Renew(within(t, long), renew); lease.CodeOf(err) != lease.CodeLost {
		t.Errorf("renew of what has ended: %v", err)
	}
}

// operations are all calls of a store, by name.
func operations(c *holder.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"acquire": func(ctx context.Context) error { _, err := c.Acquire(ctx, acquireK); return err },
		"renew": func(ctx context.Context) error {
			_, err := c.Renew(ctx, lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second})
			return err
		},
		"renew 1 leases": func(ctx context.Context) error {
			_, err := c.BatchRenew(ctx, []lease.RenewRequest{{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second}})
			return err
		},
		"release": func(ctx context.Context) error {
			_, err := c.Release(ctx, lease.ReleaseRequest{Key: "k", Owner: "o", Epoch: 1})
			return err
		},
		"forget": func(ctx context.Context) error {
			_, err := c.Forget(ctx, lease.ForgetRequest{Key: "k", Owner: "o", Epoch: 1})
			return err
		},
		"get": func(ctx context.Context) error { _, err := c.Get(ctx, lease.GetRequest{Key: "k"}); return err },
		"get stale": func(ctx context.Context) error {
			_, err := c.Get(ctx, lease.GetRequest{Key: "k", Consistency: lease.Stale})
			return err
		},
		"list":    func(ctx context.Context) error { _, err := c.List(ctx, lease.ListRequest{Prefix: "k"}); return err },
		"history": func(ctx context.Context) error { _, err := c.History(ctx, lease.HistoryRequest{Key: "k"}); return err },
	}
}

func isRead(name string) bool {
	return slices.Contains([]string{"get", "get stale", "list", "history"}, name)
}

// wantEnd checks the error of a call that was still without an answer at its end.
func wantEnd(t *testing.T, err error, want lease.Code) {
	t.Helper()
	other := lease.ErrOutcomeUnknown
	if want == lease.CodeOutcomeUnknown {
		other = lease.ErrUnavailable
	}
	if lease.CodeOf(err) != want || errors.Is(err, other) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want %s and the end of the deadline alone", err, want)
	}
}

func TestWhatWasSentAndNeverAnsweredIsUnknown(t *testing.T) {
	for what, fault := range map[string]func(context.Context, int, serveCall) (any, error){
		"reset":   func(context.Context, int, serveCall) (any, error) { return nil, errReset },
		"hanging": func(ctx context.Context, _ int, _ serveCall) (any, error) { <-ctx.Done(); return nil, ctx.Err() },
		"once reset, then unavailable": func(_ context.Context, n int, _ serveCall) (any, error) {
			if n == 1 {
				return nil, errReset
			}
			return nil, wire.StatusOf(lease.ErrUnavailable, wire.Leader{}).Err()
		},
	} {
		for name := range operations(nil) {
			nodes, _ := startCluster(t, 1)
			nodes[0].fault = fault
			err := operations(dial(t, nodes...))[name](within(t, 200*time.Millisecond))
			want := lease.CodeOutcomeUnknown
			if isRead(name) {
				want = lease.CodeUnavailable
			}
			t.Run(what+" "+name, func(t *testing.T) { wantEnd(t, err, want) })
			if what == "reset" && (err == nil || !strings.HasPrefix(err.Error(), strings.TrimSuffix(name, " stale")) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("%s: the message does not say so in one line: %v", name, err)
			}
		}
	}
}

func TestWhatWasNeverSentIsUnavailable(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	nodes[0].server.Stop()
	for name, call := range operations(dial(t, nodes...)) {
		err := call(within(t, 200*time.Millisecond))
		t.Run(name, func(t *testing.T) { wantEnd(t, err, lease.CodeUnavailable) })
	}
}

func TestWhatWasAlwaysRefusedIsUnavailable(t *testing.T) {
	nodes, _ := startCluster(t, 3)
	for _, n := range nodes {
		n.fault = func(context.Context, int, serveCall) (any, error) {
			return nil, wire.StatusOf(lease.ErrUnavailable, wire.Leader{}).Err()
		}
	}
	for name, call := range operations(dial(t, nodes...)) {
		var err error
		for range 5 { // the deadline may cut a try off, whose outcome is then unknown indeed
			if err = call(within(t, 250*time.Millisecond)); !errors.Is(err, lease.ErrOutcomeUnknown) {
				break
			}
		}
		t.Run(name, func(t *testing.T) { wantEnd(t, err, lease.CodeUnavailable) })
	}
	for i, n := range nodes {
		if n.count() == 0 {
			t.Errorf("node %d was never asked", i)
		}
	}
}

func TestAnElectionIsWaitedOut(t *testing.T) {
	nodes, _ := startCluster(t, 3)
	for _, n := range nodes {
		n.fault = func(_ context.Context, call int, serve serveCall) (any, error) {
			if call <= 2 {
				return nil, wire.StatusOf(lease.ErrUnavailable, wire.Leader{}).Err()
			}
			return serve()
		}
	}
	acquired(t, dial(t, nodes...), acquireK)
}

func TestACallThatIsGivenUpEndsAtOnce(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	reached := make(chan struct{})
	nodes[0].fault = func(ctx context.Context, _ int, _ serveCall) (any, error) {
		close(reached)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithCancel(within(t, long))
	go func() { <-reached; cancel() }()
	_, err := dial(t, nodes...).Acquire(ctx, acquireK)
	if !errors.Is(err, lease.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("sent: got %v", err)
	}
	_, err = dial(t, nodes...).Acquire(ctx, acquireK)
	if !errors.Is(err, lease.ErrUnavailable) || !errors.Is(err, context.Canceled) || errors.Is(err, lease.ErrOutcomeUnknown) {
		t.Errorf("not sent: got %v", err)
	}
}

func TestTheOutcomeOfAnEarlierAttemptIsNotForgotten(t *testing.T) {
	nodes, clock := startCluster(t, 1)
	nodes[0].fault = func(_ context.Context, n int, serve serveCall) (any, error) {
		resp, err := serve()
		switch n {
		case 1:
			clock.Advance(2 * time.Second)
			return nil, errReset
		case 2: // lost: the call goes on under another id
			return resp, err
		default:
			return nil, wire.StatusOf(lease.ErrUnavailable, wire.Leader{}).Err()
		}
	}
	_, err := dial(t, nodes...).Acquire(within(t, 500*time.Millisecond), acquireK)
	wantEnd(t, err, lease.CodeOutcomeUnknown)
}

func TestABatchKeepsItsOrder(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	c := dial(t, nodes...)
	acquired(t, c, acquireK)
	good := lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second}
	lost, invalid, fraction := good, good, good
	lost.Epoch, invalid.Owner, fraction.TTL = 7, " ", time.Second+1
	loseAnswers(nodes[0], 1, nothing)
	outcomes, err := c.BatchRenew(within(t, long), []lease.RenewRequest{invalid, good, fraction, lost, good})
	if err != nil {
		t.Fatal(err)
	}
	var got []lease.Code
	for _, o := range outcomes {
		got = append(got, lease.CodeOf(o.Err))
	}
	if want := []lease.Code{lease.CodeInvalid, "", lease.CodeInvalid, lease.CodeLost, ""}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var ttl *lease.InvalidError
	if !errors.As(outcomes[2].Err, &ttl) || ttl.Field != "ttl" {
		t.Errorf("a fraction of a millisecond: %v", outcomes[2].Err)
	}
	if _, err := c.BatchRenew(within(t, long), make([]lease.RenewRequest, lease.MaxBatchRenew+1)); lease.CodeOf(err) != lease.CodeInvalid {
		t.Errorf("1001 renewals: %v", err)
	}
}

func TestAnswersThatNoServerCanGive(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	c := dial(t, nodes...)
	nodes[0].fault = func(_ context.Context, _ int, serve serveCall) (any, error) {
		resp, err := serve()
		switch r := resp.(type) {
		case *leasepb.GetResponse:
			r.Answer = nil
		case *leasepb.AcquireResponse:
			r.Answer.RemainingMs = -1
		case *leasepb.BatchRenewResponse:
			r.Results = nil
		}
		return resp, err
	}
	for name, want := range map[string]lease.Code{"get": lease.CodeUnavailable, "acquire": lease.CodeOutcomeUnknown, "renew 1 leases": lease.CodeOutcomeUnknown} {
		if err := operations(c)[name](within(t, long)); lease.CodeOf(err) != want {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
