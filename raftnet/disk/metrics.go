package disk

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the storage of one node counts. They are registered as long as it
// is open.
type metrics struct {
	registry prometheus.Registerer
	calls    *prometheus.HistogramVec
	hangs    prometheus.Counter
	failures prometheus.Counter
	refused  prometheus.Counter
	unsaved  prometheus.Counter
	known    []prometheus.Collector
}

func newMetrics(registry prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return &metrics{
		registry: registry,
		calls: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "leasenode_storage_seconds", Help: "Time that a call of the log or the vote took.", Buckets: prometheus.ExponentialBuckets(0.00001, 4, 12),
		}, []string{"op"}),
		hangs:    counter("leasenode_storage_hangs_total", "Times that the disk hung for so long that the node ended."),
		failures: counter("leasenode_storage_failures_total", "1 once a write, an fsync or a read has failed; the node stops then."),
		refused:  counter("leasenode_storage_refused_total", "Writes that were refused since the disk is full."),
		unsaved:  counter("leasenode_snapshot_failures_total", "Snapshots that could not be finished."),
	}
}

// register adds the metrics to the registry, with gauges that ask s.
func (m *metrics) register(s *Stores) error {
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
	}
	for _, c := range []prometheus.Collector{
		m.calls, m.hangs, m.failures, m.refused, m.unsaved,
		gauge("leasenode_storage_slowest_seconds", "Time that the slowest call of the last minute took, those in progress included.", func() float64 { return s.watchdog.slowestCall().Seconds() }),
		gauge("leasenode_disk_full", "1 if the disk is full, and what would grow is refused.", func() float64 {
			if s.Full() {
				return 1
			}
			return 0
		}),
		gauge("leasenode_log_bytes", "Size of the file, or the files, that have the log.", func() float64 { return float64(s.journal.bytes()) }),
		gauge("leasenode_log_entries", "Entries in the log.", func() float64 {
			if h := s.journal.head(); h.first > 0 {
				return float64(h.last - h.first + 1)
			}
			return 0
		}),
		gauge("leasenode_snapshot_age_seconds", "Age of the newest snapshot; 0 if there is none.", func() float64 {
			if newest := s.snapshots.newest.Load(); newest != nil {
				return time.Since(newest.Created).Seconds()
			}
			return 0
		}),
		gauge("leasenode_snapshot_bytes", "Size of the newest snapshot; 0 if there is none.", func() float64 {
			if newest := s.snapshots.newest.Load(); newest != nil {
				return float64(newest.Size)
			}
			return 0
		}),
	} {
		if err := m.registry.Register(c); err != nil {
			m.unregister()
			return err
		}
		m.known = append(m.known, c)
	}
	return nil
}

func (m *metrics) unregister() {
	for _, c := range m.known {
		m.registry.Unregister(c)
	}
}
