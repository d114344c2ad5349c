package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api"
	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/peerpb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/fsm"
	"github.com/leasenode/leasenode/lease"
)

func digests(pairs ...byte) []fsm.Digest {
	var list []fsm.Digest
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, fsm.Digest{Index: uint64(pairs[i]), Sum: [32]byte{pairs[i+1]}})
	}
	return list
}

func clusterStatus(t *testing.T, n *running) *leasepb.StatusResponse {
	t.Helper()
	resp, err := leasepb.NewClusterServiceClient(n.public).Status(within(t), &leasepb.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func describe(s *leasepb.StatusResponse) string {
	var parts []string
	for _, m := range s.GetMembers() {
		parts = append(parts, fmt.Sprintf("%s %s %q %s %v %d", m.GetId(), m.GetPeerAddr(), m.GetApiAddr(), m.GetRole(), m.GetHealthy(), m.GetAppliedIndex()))
	}
	return strings.Join(parts, "; ")
}

func TestStatusOfAWholeCluster(t *testing.T) {
	leader, follower := startPair(t)
	learner := start(t, "n3")
	leader.locked(func() { leader.digests = digests(8, 1, 16, 2, 24, 3) })
	follower.locked(func() { follower.digests, follower.peers["n3"] = digests(16, 2, 24, 3, 32, 4), learner.peer })
	learner.locked(func() { learner.digests, learner.leader = digests(8, 1, 16, 2), api.Leader{ID: "n1"} })
	s := clusterStatus(t, follower)
	if want := `n1 p1:1 "n1:7201" leader true 42; n2 p2:1 "n2:7201" follower true 42; n3 p3:1 "n3:7201" learner true 42`; describe(s) != want {
		t.Errorf("got  %s\nwant %s", describe(s), want)
	}
	if s.GetClusterId() != "c-1" || s.GetLeader() != "n1" || s.GetTerm() != 7 || s.GetNowMs() != 1_000_000 {
		t.Errorf("got %v", s)
	}
	sum := "02" + strings.Repeat("00", 31)
	if s.GetDigestIndex() != 16 || fmt.Sprint(s.GetDigests()) != fmt.Sprintf("map[n1:%s n2:%s n3:%s]", sum, sum, sum) {
		t.Errorf("digests at %d: %v", s.GetDigestIndex(), s.GetDigests())
	}
}

// A node that is started anew knows a leader before it has applied anything, and is not
// to be told from one that is well by that: only by what the others have.
func TestWhoIsBehindIsNotHealthy(t *testing.T) {
	for _, c := range []struct {
		leads, follows uint64
		healthy        bool
	}{
		{42, 0, false},
		{42, 1, true},
		{0, 0, true},
		{2000, 1000, true},
		{2000, 999, false},
		{999, 2000, false}, // the leader itself: it has opened no term yet, whatever it says
	} {
		leader, follower := startPair(t)
		leader.locked(func() { leader.applied, leader.digests = c.leads, digests(8, 1, 16, 2) })
		follower.locked(func() { follower.applied, follower.digests = c.follows, nil })
		s := clusterStatus(t, follower)
		healthy := s.GetMembers()[0].GetHealthy() && s.GetMembers()[1].GetHealthy()
		if healthy != c.healthy || s.GetMembers()[1].GetAppliedIndex() != c.follows {
			t.Errorf("%d and %d applied: %s", c.leads, c.follows, describe(s))
		}
		if compared := s.GetDigestIndex() > 0; c.leads > c.follows && compared == c.healthy {
			t.Errorf("%d and %d applied: digests are compared at %d", c.leads, c.follows, s.GetDigestIndex())
		}
	}
}

func TestStatusNeedsNobodyElse(t *testing.T) {
	n := start(t, "n2")
	silent, err := net.Listen("tcp", "127.0.0.1:0") // never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	imposter := start(t, "n7")
	n.locked(func() { n.peers["n1"], n.peers["n3"] = connect(t, silent.Addr().String()), imposter.peer })
	s := clusterStatus(t, n)
	if want := `n1 p1:1 "" follower false 0; n2 p2:1 "n2:7201" follower false 42; n3 p3:1 "" learner false 0`; describe(s) != want {
		t.Errorf("got  %s\nwant %s", describe(s), want)
	}
	if s.GetLeader() != "" || s.GetDigestIndex() != 0 || len(s.GetDigests()) != 0 {
		t.Errorf("got %v", s)
	}
}

func TestDigestsOfTheHealthyAlone(t *testing.T) {
	leader, follower := startPair(t)
	leader.locked(func() { leader.digests = digests(8, 1, 16, 2) })
	lost := start(t, "n3") // answers, and knows no leader
	lost.locked(func() { lost.digests = digests(24, 7) })
	follower.locked(func() { follower.digests, follower.peers["n3"] = digests(8, 9), lost.peer })
	if s := clusterStatus(t, follower); s.GetDigestIndex() != 8 || s.GetDigests()["n1"] == s.GetDigests()["n2"] {
		t.Errorf("a difference is hidden: %v", s)
	}
	follower.locked(func() { follower.digests = nil })
	if s := clusterStatus(t, follower); s.GetDigestIndex() != 0 || len(s.GetDigests()) != 0 {
		t.Errorf("got %v", s)
	}
}

func TestThePeerPortTellsTheState(t *testing.T) {
	leader, _ := startPair(t)
	leader.locked(func() { leader.digests = digests(8, 1) })
	s, err := peerpb.NewPeerServiceClient(leader.peer).State(within(t), &peerpb.StateRequest{})
	if err != nil || s.GetId() != "n1" || s.GetApiAddr() != "n1:7201" || s.GetRole() != "leader" || !s.GetHealthy() || s.GetTerm() != 7 || s.GetAppliedIndex() != 42 || len(s.GetDigests()) != 1 {
		t.Errorf("got %v, %v", s, err)
	}
	_, err = peerpb.NewPeerServiceClient(leader.public).State(within(t), &peerpb.StateRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("the public port answers what is for nodes: %v", err)
	}
}

func TestAPanicEndsOneCallOnly(t *testing.T) {
	n := startLeader(t)
	n.locked(func() {
		n.propose = func(context.Context, []lease.Mutation) ([]lease.Outcome, error) { panic("a bug") }
	})
	_, err := n.leases.Renew(within(t), renewal("k"))
	if status.Code(err) != codes.Internal || lease.CodeOf(wire.FromCall(err, wire.Mutates)) != lease.CodeOutcomeUnknown {
		t.Errorf("got %v", err)
	}
	n.locked(func() { n.propose = nil })
	if _, err := n.leases.Renew(within(t), renewal("k")); err != nil {
		t.Errorf("the next call fails: %v", err)
	}
	if ok, internal := counted(t, n, "LeaseService/Renew", "OK"), counted(t, n, "LeaseService/Renew", "Internal"); ok != 1 || internal != 1 {
		t.Errorf("counted %v OK and %v Internal", ok, internal)
	}
}

func TestCallsWithoutADeadlineAreGivenOne(t *testing.T) {
	n := startLeader(t)
	left := make(chan time.Duration, 1)
	n.locked(func() {
		n.confirm = func(ctx context.Context) error {
			deadline, _ := ctx.Deadline()
			left <- time.Until(deadline)
			return nil
		}
	})
	if _, err := n.leases.Get(context.Background(), &leasepb.GetRequest{Key: []byte("k")}); err != nil {
		t.Fatal(err)
	}
	if d := <-left; d <= 0 || d > 30*time.Second {
		t.Errorf("%v are left", d)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	leader, follower := startPair(t)
	leader.locked(func() {
		leader.propose = func(context.Context, []lease.Mutation) ([]lease.Outcome, error) {
			return []lease.Outcome{{Err: &lease.LostError{Record: lease.Record{Key: "k"}}}}, nil
		}
	})
	_, _ = follower.leases.Renew(within(t), renewal("k"))
	if got := counted(t, follower, "LeaseService/Renew", "LEASE_LOST"); got != 1 {
		t.Errorf("counted %v where it was sent", got)
	}
	if got := counted(t, leader, "LeaseService/Renew", "LEASE_LOST"); got != 0 {
		t.Errorf("counted %v again where it was passed on to", got)
	}
	_, err := api.NewPublicServer(api.Node{}, nil, follower.registry)
	if err == nil {
		t.Error("the same metrics are registered twice")
	}
}

// counted returns leasenode_requests_total of n.
func counted(t *testing.T, n *running, method, code string) float64 {
	t.Helper()
	families, err := n.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if family.GetName() == "leasenode_requests_total" && labels["method"] == method && labels["code"] == code {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

func TestLogsNameNobodyAboveDebug(t *testing.T) {
	var log bytes.Buffer
	f := &fakeNode{id: "n1", leads: true}
	node := api.Node{ID: "n1", Consensus: f, State: f, Peers: f, Logger: hclog.New(&hclog.LoggerOptions{Output: &log, Level: hclog.Info})}
	server, err := api.NewPublicServer(node, api.NewHealth(node), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	conn := serve(t, server)
	f.confirm = func(context.Context) error { return lease.ErrUnavailable }
	_, _ = leasepb.NewLeaseServiceClient(conn).Get(within(t), &leasepb.GetRequest{Key: []byte("secret")})
	server.Stop()
	if log.Len() != 0 {
		t.Errorf("logged %s", log.String())
	}
}

func TestReflectionListsWhatIsServed(t *testing.T) {
	n := startLeader(t)
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	stream, err := reflectionpb.NewServerReflectionClient(n.public).ServerReflectionInfo(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	for _, want := range []string{"leasenode.v1.LeaseService", "leasenode.v1.ClusterService", "grpc.health.v1.Health"} {
		if !strings.Contains(strings.Join(names, " "), want) {
			t.Errorf("%s is missing in %v", want, names)
		}
	}
}

func TestHealthFollowsWhatTheNodeCanServe(t *testing.T) {
	n := start(t, "n1")
	check := func(service string) healthpb.HealthCheckResponse_ServingStatus {
		resp, err := healthpb.NewHealthClient(n.public).Check(within(t), &healthpb.HealthCheckRequest{Service: service})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetStatus()
	}
	want := func(what string, whole, local healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		eventually(t, what, func() bool {
			return check("") == whole && check("leasenode.v1.LeaseService") == whole && check("leasenode.v1.ClusterService") == local
		})
	}
	const up, down = healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING
	want("no leader is known", down, up)
	n.locked(func() { n.leader = api.Leader{ID: "n2"} })
	want("another leads", up, up)
	n.locked(func() { n.leader = api.Leader{ID: "n1"} })
	want("it is elected and not ready", down, up)
	n.locked(func() { n.leads = true })
	want("it leads", up, up)
	n.health.Close()
	if check("") != down || check("leasenode.v1.ClusterService") != down {
		t.Error("it still says it serves after Close")
	}
	n.health.Close()
}

func TestHealthThatWasNotStartedCanBeClosed(t *testing.T) {
	f := &fakeNode{}
	h := api.NewHealth(api.Node{Consensus: f})
	h.Close()
	h.Start() // does nothing any more
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("not so in time: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
