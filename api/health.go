package api

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/leasenode/leasenode/api/leasepb"
)

// healthInterval is how often the health is looked at: a small part of any election.
const healthInterval = 100 * time.Millisecond

// Health tells, as grpc.health.v1, whether a node can serve. The whole server ("")
// and LeaseService are SERVING while linearizable requests can be: the node leads
// an opened term, or knows another node that leads. That holds for a node that is still
// applying its log after a start, too: it passes requests on. Whether it has caught up,
// ClusterService.Status tells. ClusterService is SERVING while
// the node is up, since neither it nor stale reads need a leader. Before Start and
// after Close nothing is.
type Health struct {
	node   Node
	server *health.Server

	start  sync.Once
	cancel context.CancelFunc
	ctx    context.Context // the component's lifetime
	joined sync.WaitGroup
}

// NewHealth returns the health of n, which has to be started.
func NewHealth(n Node) *Health {
	h := &Health{node: n, server: health.NewServer()}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	for _, service := range []string{"", leasepb.LeaseService_ServiceDesc.ServiceName, leasepb.ClusterService_ServiceDesc.ServiceName} {
		h.server.SetServingStatus(service, healthpb.HealthCheckResponse_NOT_SERVING)
	}
	return h
}

// Start begins to look. It may be called once; later calls do nothing.
func (h *Health) Start() {
	h.start.Do(func() {
		h.server.SetServingStatus(leasepb.ClusterService_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
		h.joined.Go(h.lookLoop)
	})
}

// Close has everything NOT_SERVING from now on, and returns when the goroutine has
// ended. Idempotent. It comes before the servers are stopped, so that clients go
// elsewhere in time.
func (h *Health) Close() {
	h.cancel()
	h.start.Do(func() {})
	h.joined.Wait()
	h.server.Shutdown()
}

func (h *Health) lookLoop() {
	ticker := time.NewTicker(healthInterval)
	defer ticker.Stop()
	for {
		h.look()
		select {
		case <-ticker.C:
		case <-h.ctx.Done():
			return
		}
	}
}

func (h *Health) look() {
	serving := healthpb.HealthCheckResponse_NOT_SERVING
	if h.node.Serves() {
		serving = healthpb.HealthCheckResponse_SERVING
	}
	h.server.SetServingStatus("", serving)
	h.server.SetServingStatus(leasepb.LeaseService_ServiceDesc.ServiceName, serving)
}
