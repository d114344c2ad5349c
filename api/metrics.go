package api

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

// metrics count the calls that clients have sent to this node, wherever they were
// answered in the end.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	watches  watchMetrics
}

// watchMetrics count watches on this node.
type watchMetrics struct {
	watchers prometheus.Gauge
	events   prometheus.Counter
	cut      prometheus.Counter
	closed   prometheus.Counter
}

// registerBytes has the room that messages take up shown.
func (m *watchMetrics) registerBytes(registry prometheus.Registerer, used func() int) error {
	err := registry.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "leasenode_watch_bytes",
		Help: "Bytes of messages that are on their way to watchers.",
	}, func() float64 { return float64(used()) }))
	if err != nil {
		return fmt.Errorf("register the metrics of watches: %w", err)
	}
	return nil
}

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasenode_requests_total",
			Help: "Calls that clients have sent to this node, by method and by what became of them: OK, the reason of the failure, or its gRPC code where it has no reason.",
		}, []string{"method", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "leasenode_request_seconds",
			Help:    "Time from a call's arrival at this node to its answer, without calls that wait in line.",
			Buckets: prometheus.ExponentialBuckets(0.00025, 2, 17), // to 16 s
		}, []string{"method"}),
	}
	m.watches = watchMetrics{
		watchers: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "leasenode_watchers",
			Help: "Watches that are served by this node now.",
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "leasenode_watch_events_total",
			Help: "Events that were sent to watchers, once for each.",
		}),
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "leasenode_watchers_cut_total",
			Help: "Watches that were cut off because their reader was too slow.",
		}),
		closed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "leasenode_watch_connections_closed_total",
			Help: "Connections of clients that were closed because what their watches were sent was not read, and others waited for the room.",
		}),
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds, m.watches.watchers, m.watches.events, m.watches.cut, m.watches.closed} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of requests: %w", err)
		}
	}
	return m, nil
}

// observe counts a call of req. How long one waited in line says nothing of the cluster.
func (m *metrics) observe(method, code string, req any, took time.Duration) {
	method = methodName(method)
	m.requests.WithLabelValues(method, code).Inc()
	if acquire, ok := req.(*leasepb.AcquireRequest); ok && acquire.GetWaitMs() > 0 {
		return
	}
	m.seconds.WithLabelValues(method).Observe(took.Seconds())
}

// methodName returns LeaseService/Get of /leasenode.v1.LeaseService/Get: methods of
// several services have one name, but no two services have.
func methodName(full string) string {
	service, method := path.Split(full)
	return strings.TrimPrefix(path.Ext(path.Base(service)), ".") + "/" + method
}

// codeName returns what became of a call that failed with err, as it was answered.
func codeName(err error) string {
	if err == nil {
		return "OK"
	}
	if wire.Answered(err) {
		return string(lease.CodeOf(wire.FromCall(err, wire.Mutates)))
	}
	return status.Code(err).String()
}
