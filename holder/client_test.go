package holder_test

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

func TestConformanceThroughTheWire(t *testing.T) {
	nodes, clock := startCluster(t, 1)
	subject := leasetest.Subject{Store: dial(t, nodes...), Retries: true, Advance: func(_ context.Context, d time.Duration) error { clock.Advance(d); return nil }}
	for _, failure := range leasetest.Run(within(t, time.Minute), subject) {
		t.Errorf("%s: %v", failure.Check, failure.Err)
	}
}

// An endpoint without a port would be taken for one with gRPC's default port, and only
// fail when it is used.
func TestEndpointsThatAreNone(t *testing.T) {
	none := func(context.Context, string) (net.Conn, error) { return nil, errors.New("not now") }
	for name, c := range map[string]struct {
		endpoints []string
		options   []holder.Option
		bad       bool
	}{
		"none":                {nil, nil, true},
		"blank":               {[]string{""}, nil, true},
		"no port":             {[]string{"10.0.0.1:7201", "foo"}, nil, true},
		"an empty port":       {[]string{"foo:"}, nil, true},
		"port 0":              {[]string{"foo:0"}, nil, true},
		"port 65536":          {[]string{"foo:65536"}, nil, true},
		"bare IPv6":           {[]string{"::1"}, nil, true},
		"a scheme":            {[]string{"dns:///foo:7201"}, nil, true},
		"a URL":               {[]string{"http://foo:7201"}, nil, true},
		"two in one":          {[]string{"foo:7201, bar:7201"}, nil, true},
		"a path":              {[]string{"/run/node:7201"}, nil, true},
		"a space":             {[]string{"foo bar:7201"}, nil, true},
		"a name":              {[]string{"foo:7201"}, nil, false},
		"a named port":        {[]string{"foo:leasenode"}, nil, false},
		"IPv6":                {[]string{"[::1]:7201"}, nil, false},
		"this machine":        {[]string{":7201"}, nil, false},
		"dialled as told":     {[]string{"/run/leasenode.sock"}, []holder.Option{holder.DialWith(none)}, false},
		"nothing to dial":     {[]string{""}, []holder.Option{holder.DialWith(none)}, true},
		"no one to dial":      {nil, []holder.Option{holder.DialWith(none)}, true},
		"the largest, spoilt": {[]string{"foo:99999999999999999999"}, nil, true},
	} {
		client, err := holder.Dial(c.endpoints, c.options...)
		if err == nil {
			_ = client.Close()
		}
		invalid, ok := errors.AsType[*lease.InvalidError](err)
		if c.bad && (!ok || invalid.Field != "endpoints" || !strings.Contains(err.Error(), "host:port")) || !c.bad && err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestItGoesWhereTheLeaderIs(t *testing.T) {
	nodes, _ := startCluster(t, 2)
	leader, follower := nodes[0], nodes[1]
	c := dial(t, follower) // is not told of the leader
	acquired(t, c, acquireK)
	for range 3 {
		if _, err := c.Get(within(t, long), lease.GetRequest{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	if follower.count() != 1 || leader.count() != 3 {
		t.Errorf("%d calls at the follower and %d at the leader, want 1 and 3", follower.count(), leader.count())
	}
}

func TestARefusalNamesTheLeaderToo(t *testing.T) {
	nodes, _ := startCluster(t, 2)
	leader, follower := nodes[0], nodes[1]
	acquired(t, dial(t, leader), acquireK)
	c, before := dial(t, follower), leader.count()
	for range 3 {
		if _, err := c.Acquire(within(t, long), acquireK); lease.CodeOf(err) != lease.CodeHeld {
			t.Fatal(err)
		}
	}
	if follower.count() != 1 || leader.count()-before != 2 {
		t.Errorf("%d calls at the follower and %d at the leader, want 1 and 2", follower.count(), leader.count()-before)
	}
}

func TestItStaysWithItsEndpointsIfTold(t *testing.T) {
	nodes, _ := startCluster(t, 2)
	c, err := holder.Dial([]string{nodes[1].addr}, holder.StayWithEndpoints())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	acquired(t, c, acquireK)
	if _, err := c.Acquire(within(t, long), acquireK); lease.CodeOf(err) != lease.CodeHeld {
		t.Fatal(err)
	}
	if nodes[0].count() != 0 {
		t.Error("it went where it was told not to")
	}
}

func TestUnavailableNamesTheLeaderToGoTo(t *testing.T) {
	nodes, _ := startCluster(t, 2)
	nodes[1].set(func() {
		nodes[1].fault = func(context.Context, int, serveCall) (any, error) {
			return nil, wire.StatusOf(lease.ErrUnavailable, nodes[0].leader).Err()
		}
	})
	acquired(t, dial(t, nodes[1]), acquireK)
}

func TestADeadLeaderIsLeft(t *testing.T) {
	nodes, _ := startCluster(t, 3)
	c := dial(t, nodes...)
	acquired(t, c, acquireK)
	nodes[0].server.Stop()
	for _, n := range nodes[1:] {
		n.set(func() { n.leader = nodes[2].leader })
	}
	if _, err := c.Renew(within(t, long), lease.RenewRequest{Key: "k", Owner: "o", Epoch: 1, TTL: time.Second}); err != nil {
		t.Fatal(err)
	}
}

func TestABlackHoleIsLeftWithinTheDeadline(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	nodes, _ := startCluster(t, 1)
	c := dialAddrs(t, silent.Addr().String(), nodes[0].addr)
	if _, err := c.Acquire(within(t, 3*time.Second), acquireK); err != nil {
		t.Fatal(err)
	}
}

func TestALeaderThatIsCutOffFromHereAloneIsAvoided(t *testing.T) {
	nodes, _ := startCluster(t, 2)
	leader, follower := nodes[0], nodes[1]
	leader.set(func() {
		leader.fault = func(ctx context.Context, _ int, _ serveCall) (any, error) { <-ctx.Done(); return nil, ctx.Err() }
	})
	c := dial(t, leader, follower)
	for range 5 { // the follower answers, and names the leader every time
		if _, err := c.Get(within(t, 600*time.Millisecond), lease.GetRequest{Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	if leader.count() != 1 {
		t.Errorf("%d of 5 calls were lost on the leader first, want 1", leader.count())
	}
}

func TestStaleReadsGoInTheOrderGiven(t *testing.T) {
	nodes, _ := startCluster(t, 3)
	c := dial(t, nodes[2], nodes[1], nodes[0])
	if _, err := c.Get(within(t, long), lease.GetRequest{Key: "k"}); err != nil { // learns the leader
		t.Fatal(err)
	}
	before := nodes[2].count()
	for range 3 {
		if _, err := c.Get(within(t, long), lease.GetRequest{Key: "k", Consistency: lease.Stale}); err != nil {
			t.Fatal(err)
		}
	}
	if got := nodes[2].count() - before; got != 3 {
		t.Errorf("%d of 3 went to the first endpoint", got)
	}
	nodes[2].server.Stop()
	if _, err := c.List(within(t, long), lease.ListRequest{Consistency: lease.Stale}); err != nil {
		t.Errorf("the first is dead: %v", err)
	}
	if nodes[1].count() != 1 {
		t.Error("the second endpoint was not asked next")
	}
}

func TestStatusIsThatOfTheFirstThatAnswers(t *testing.T) {
	nodes, _ := startCluster(t, 2)
	nodes[0].server.Stop()
	s, err := dial(t, nodes...).Status(within(t, long))
	if err != nil {
		t.Fatal(err)
	}
	want := holder.Member{ID: "b", PeerAddr: "p:1", APIAddr: nodes[1].addr, Role: "leader", Healthy: true, AppliedIndex: 9}
	if s.ClusterID != "c" || s.Leader != "a" || s.Term != 3 || s.Now != lease.InstantOfMillis(5) || s.DigestIndex != 8 || s.Digests["b"] != "ff" || len(s.Members) != 1 || s.Members[0] != want {
		t.Errorf("got %+v", s)
	}
}

func TestWhatNoServerReadsIsRefusedAtOnce(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	req := acquireK
	req.Key = strings.Repeat("k", 5<<20)
	_, err := dial(t, nodes...).Acquire(within(t, long), req)
	if lease.CodeOf(err) != lease.CodeExhausted || nodes[0].count() != 0 {
		t.Errorf("got %v after %d calls", err, nodes[0].count())
	}
}

func TestAClosedClient(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	c := dial(t, nodes...)
	acquired(t, c, acquireK)
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Acquire(within(t, long), acquireK); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("acquire: %v", err)
	}
	if _, err := c.Status(within(t, long)); !errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("status: %v", err)
	}
}

func TestClosingDoesNotMakeAnUnknownOutcomeKnown(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	c := dial(t, nodes...)
	reached := make(chan struct{})
	nodes[0].fault = func(ctx context.Context, _ int, serve serveCall) (any, error) {
		resp, err := serve()
		close(reached)
		<-ctx.Done()
		return resp, err
	}
	go func() { <-reached; _ = c.Close() }()
	_, err := c.Acquire(within(t, long), acquireK)
	if !errors.Is(err, lease.ErrOutcomeUnknown) || errors.Is(err, lease.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerThatCannotBeReadIsNoSuccess(t *testing.T) {
	nodes, _ := startCluster(t, 1)
	nodes[0].fault = func(context.Context, int, serveCall) (any, error) { return nil, status.Error(codes.Unimplemented, "") }
	_, err := dial(t, nodes...).Get(within(t, 200*time.Millisecond), lease.GetRequest{Key: "k"})
	if lease.CodeOf(err) != lease.CodeUnavailable {
		t.Errorf("got %v", err)
	}
}

func TestItLinksNoConsensusAndNoStorage(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, dep := range strings.Fields(string(out)) {
		for _, banned := range []string{"hashicorp/raft", "go.etcd.io/bbolt", "boltdb", "prometheus", "leasenode/fsm", "leasenode/raftnet", "leasenode/internal"} {
			if strings.Contains(dep, banned) {
				t.Errorf("an embedder would compile %s", dep)
			}
		}
	}
}
