package raftnet

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are what a node counts. One serves one node.
type Metrics struct {
	registry  prometheus.Registerer
	entries   prometheus.Counter
	mutations prometheus.Histogram
	commit    prometheus.Histogram
	rounds    prometheus.Counter
	probes    *prometheus.CounterVec
	handovers *prometheus.CounterVec
	gauges    []prometheus.Collector
}

// NewMetrics registers the metrics.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		registry: registry,
		entries:  prometheus.NewCounter(prometheus.CounterOpts{Name: "leasenode_entries_total", Help: "Log entries that this node proposed."}),
		mutations: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leasenode_entry_mutations", Help: "Mutations in a proposed log entry.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "leasenode_commit_seconds", Help: "Time from proposing a log entry to its outcome.", Buckets: prometheus.ExponentialBuckets(0.00025, 2, 16),
		}),
		rounds: prometheus.NewCounter(prometheus.CounterOpts{Name: "leasenode_confirmations_total", Help: "Rounds in which a majority confirmed this node's leadership for reads."}),
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasenode_failover_probes_total", Help: "Looks at a leader whose connections had closed, by what came of them.",
		}, []string{"result"}),
	}
	m.handovers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "leasenode_handovers_total", Help: "Grants to those who waited in line, by what made the key free: release, expiry, or to for a release to a named owner.",
	}, []string{"cause"})
	for _, result := range probeResults {
		m.probes.WithLabelValues(string(result))
	}
	registry.MustRegister(m.entries, m.mutations, m.commit, m.rounds, m.probes, m.handovers)
	return m
}

func (m *Metrics) entry(mutations int, took time.Duration) {
	m.entries.Inc()
	m.mutations.Observe(float64(mutations))
	m.commit.Observe(took.Seconds())
}

func (m *Metrics) confirmed() { m.rounds.Inc() }

func (m *Metrics) probed(result probeResult) { m.probes.WithLabelValues(string(result)).Inc() }
func (m *Metrics) handedOver(why cause)      { m.handovers.WithLabelValues(string(why)).Inc() }

// watch registers the gauges that ask n.
func (m *Metrics) watch(n *Node) {
	gauge := func(name, help string, value func() float64) {
		m.gauges = append(m.gauges, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	gauge("leasenode_leads", "1 if this node leads and has opened its term.", func() float64 {
		if n.Leads() {
			return 1
		}
		return 0
	})
	gauge("leasenode_term", "The present term.", func() float64 { return float64(n.Term()) })
	gauge("leasenode_applied_index", "Index of the last log entry that the state machine applied.", func() float64 { return float64(n.cfg.FSM.AppliedIndex()) })
	gauge("leasenode_keys", "Keys that were ever granted.", func() float64 { return float64(n.cfg.FSM.Keys()) })
	gauge("leasenode_waiters", "Attempts to acquire that wait in line on this node, the leader.", func() float64 { return float64(n.lines.count.Load()) })
	m.registry.MustRegister(m.gauges...)
}

func (m *Metrics) unwatch() {
	for _, g := range m.gauges {
		m.registry.Unregister(g)
	}
}
