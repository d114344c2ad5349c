package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/lease"
)

// raw connects to node i as a client that is not ours.
func (c *cluster) raw(i int) *grpc.ClientConn {
	c.t.Helper()
	conn, err := grpc.NewClient(c.apis[i], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// reason returns the reason of a failure and the leader that it names.
func reason(err error) (reason, field string, leader *leasepb.Leader) {
	for _, detail := range status.Convert(err).Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			reason, field = d.GetReason(), d.GetMetadata()["field"]
		case *leasepb.Leader:
			leader = d
		}
	}
	return reason, field, leader
}

func TestBadInputIsRefusedByEveryNode(t *testing.T) {
	c := startCluster(t, 3)
	c.acquire("probe/held")
	valid := func(change func(*leasepb.AcquireRequest)) *leasepb.AcquireRequest {
		req := &leasepb.AcquireRequest{Key: []byte("bad"), Owner: []byte("o"), TtlMs: 1000}
		change(req)
		return req
	}
	many := make([]*leasepb.Attribute, 10_000)
	for i := range many {
		many[i] = &leasepb.Attribute{Name: fmt.Append(nil, "a", i), Value: []byte("v")}
	}
	for _, bad := range []struct {
		name, field string
		req         *leasepb.AcquireRequest
	}{
		{"no key", "key", valid(func(r *leasepb.AcquireRequest) { r.Key = nil })},
		{"a long key", "key", valid(func(r *leasepb.AcquireRequest) { r.Key = []byte(strings.Repeat("k", 513)) })},
		{"a NUL in the key", "key", valid(func(r *leasepb.AcquireRequest) { r.Key = []byte("a\x00b") })},
		{"a control character in the key", "key", valid(func(r *leasepb.AcquireRequest) { r.Key = []byte("a\u0085b") })},
		{"a key that is no UTF-8", "key", valid(func(r *leasepb.AcquireRequest) { r.Key = []byte("a\xffb") })},
		{"a blank owner", "owner", valid(func(r *leasepb.AcquireRequest) { r.Owner = []byte(" \u2003") })},
		{"an owner that is no UTF-8", "owner", valid(func(r *leasepb.AcquireRequest) { r.Owner = []byte("\xc3") })},
		{"ttl 0", "ttl", valid(func(r *leasepb.AcquireRequest) { r.TtlMs = 0 })},
		{"ttl -1", "ttl", valid(func(r *leasepb.AcquireRequest) { r.TtlMs = -1 })},
		{"ttl 99", "ttl", valid(func(r *leasepb.AcquireRequest) { r.TtlMs = 99 })},
		{"ttl that wraps", "ttl", valid(func(r *leasepb.AcquireRequest) { r.TtlMs = 1<<63 - 1 })},
		{"ttl that wraps to 1 s", "ttl", valid(func(r *leasepb.AcquireRequest) { r.TtlMs = 1<<58 + 1000 })},
		{"10,000 attributes", "attributes", valid(func(r *leasepb.AcquireRequest) { r.Attributes = many })},
		{"one attribute twice", "attributes", valid(func(r *leasepb.AcquireRequest) {
			r.Attributes = []*leasepb.Attribute{{Name: []byte("a")}, {Name: []byte("a")}}
		})},
		{"a long request id", "request_id", valid(func(r *leasepb.AcquireRequest) { r.RequestId = []byte(strings.Repeat("r", 65)) })},
	} {
		for i := range c.peers {
			_, err := leasepb.NewLeaseServiceClient(c.raw(i)).Acquire(c.within(time.Minute), bad.req)
			why, field, leader := reason(err)
			if status.Code(err) != codes.InvalidArgument || why != string(lease.CodeInvalid) || !strings.HasPrefix(field, bad.field) || leader.GetId() == "" {
				t.Errorf("%s at %s: %v (reason %q, field %q, leader %v)", bad.name, c.peers[i].ID, err, why, field, leader)
			}
		}
	}
	_, err := leasepb.NewLeaseServiceClient(c.raw(0)).Acquire(c.within(time.Minute), valid(func(r *leasepb.AcquireRequest) { r.Key = make([]byte, 5<<20) }))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a request of 5 MB: %v", err)
	}
	answer, err := c.dial().Get(c.within(time.Minute), lease.GetRequest{Key: "bad"})
	if err != nil || answer.Record.Epoch != 0 {
		t.Errorf("something of it was granted: %v, %v", answer, err)
	}
}

// What a client is told: every answer and refusal names the leader, from every node.
func TestEveryAnswerNamesTheLeader(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	for i := range c.peers {
		client := leasepb.NewLeaseServiceClient(c.raw(i))
		req := &leasepb.AcquireRequest{Key: fmt.Append(nil, "k", i), Owner: []byte("o"), TtlMs: 60_000}
		resp, err := client.Acquire(c.within(time.Minute), req)
		if err != nil || resp.GetLeader().GetId() != c.peers[leader].ID || resp.GetLeader().GetApiAddr() != c.apis[leader] {
			t.Errorf("%s answers %v, %v", c.peers[i].ID, resp, err)
		}
		_, err = client.Acquire(c.within(time.Minute), req)
		if why, _, named := reason(err); why != string(lease.CodeHeld) || named.GetApiAddr() != c.apis[leader] {
			t.Errorf("%s refuses with %q, and names %v: %v", c.peers[i].ID, why, named, err)
		}
	}
}

// Health says SERVING only where a request can be served: with a leader known.
func TestHealthFollowsTheLeader(t *testing.T) {
	c := startCluster(t, 3)
	serving := func(i int, service string) func(ctx context.Context) bool {
		return func(ctx context.Context) bool {
			resp, err := healthpb.NewHealthClient(c.raw(i)).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
			return err == nil && resp.GetStatus() == healthpb.HealthCheckResponse_SERVING
		}
	}
	for i := range c.peers {
		for _, service := range []string{"", "leasenode.v1.LeaseService", "leasenode.v1.ClusterService"} {
			c.eventually(c.peers[i].ID+" serves "+service, serving(i, service))
		}
	}
	survivor := c.leader()
	for i := range c.peers {
		if i != survivor {
			c.stop(i)
		}
	}
	c.eventually("the survivor says that it cannot serve", func(ctx context.Context) bool {
		return !serving(survivor, "leasenode.v1.LeaseService")(ctx)
	})
	if !serving(survivor, "leasenode.v1.ClusterService")(c.within(time.Minute)) {
		t.Error("the survivor does not serve its status")
	}
}

func TestHealthOfAnUnknownService(t *testing.T) {
	c := startCluster(t, 1)
	_, err := healthpb.NewHealthClient(c.raw(0)).Check(c.within(time.Minute), &healthpb.HealthCheckRequest{Service: "unknown"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("%v", err)
	}
}

func TestReflection(t *testing.T) {
	c := startCluster(t, 1)
	stream, err := reflectionpb.NewServerReflectionClient(c.raw(0)).ServerReflectionInfo(c.within(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	resp, err := stream.Recv()
	if err != nil || !strings.Contains(resp.String(), "leasenode.v1.LeaseService") {
		t.Errorf("%v, %v", resp, err)
	}
}

// A deadline is obeyed by every node, and is no failure but an unknown outcome, or
// none.
func TestDeadlinesAreObeyedWithoutAMajority(t *testing.T) {
	c := startCluster(t, 3)
	leader := c.leader()
	follower := (leader + 1) % 3
	c.stop(follower)
	c.stop((leader + 2) % 3)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := leasepb.NewLeaseServiceClient(c.raw(leader)).Acquire(ctx, &leasepb.AcquireRequest{Key: []byte("k"), Owner: []byte("o"), TtlMs: 1000})
	why, _, _ := reason(err)
	if took := time.Since(began); took > 10*time.Second || err == nil || why != "" && why != string(lease.CodeOutcomeUnknown) && why != string(lease.CodeUnavailable) {
		t.Errorf("after %v: %v", took, err)
	}
	if errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
