package disk_test

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasenode/leasenode/raftnet/disk"
)

// slow is a medium each of whose writes takes as long as it is told, or, when it
// hangs, until it is released.
type slow struct {
	disk.Medium
	took atomic.Int64 // a time.Duration
	hang atomic.Pointer[chan struct{}]
}

func (m *slow) Write(c disk.Change) error {
	if hang := m.hang.Load(); hang != nil {
		<-*hang
	}
	time.Sleep(time.Duration(m.took.Load()))
	return m.Medium.Write(c)
}

// patient is a storage on a slow disk, in a bubble.
type patient struct {
	*disk.Stores
	cfg   disk.Config
	slow  *slow
	leads atomic.Bool
	// ended is when and why the process would have ended.
	mu    sync.Mutex
	ended time.Time
	why   *disk.HangError
	index uint64
}

func openPatient(t *testing.T, change func(*disk.Config)) *patient {
	t.Helper()
	p := &patient{slow: &slow{}}
	p.cfg = config(t, quickDir(t))
	p.cfg.Leads = p.leads.Load
	p.cfg.Wrap = func(m disk.Medium) disk.Medium { p.slow.Medium = m; return p.slow }
	p.cfg.End = func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = time.Now()
		if !errors.As(err, &p.why) {
			t.Errorf("ended with %v", err)
		}
	}
	if change != nil {
		change(&p.cfg)
	}
	s, err := disk.Open(p.cfg)
	must(t, err)
	p.Stores = s
	return p
}

// write writes one entry after another for d.
func (p *patient) write(t *testing.T, d time.Duration) {
	t.Helper()
	for began := time.Now(); time.Since(began) < d; {
		p.index++
		must(t, p.Logs.StoreLog(entry(p.index, 1)))
	}
}

// hangFor lets one write hang for d, and tells how long it had hung when the process
// was ended, 0 if it was not.
func (p *patient) hangFor(t *testing.T, d time.Duration) time.Duration {
	t.Helper()
	release := make(chan struct{})
	p.slow.hang.Store(&release)
	began := time.Now()
	done := make(chan error, 1)
	p.index++
	go func() { done <- p.Logs.StoreLog(entry(p.index, 1)) }()
	time.Sleep(d)
	p.slow.hang.Store(nil)
	close(release)
	must(t, <-done)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		return 0
	}
	return p.ended.Sub(began)
}

func TestALeaderWhoseDiskHangsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for point := range 12 { // at whichever point of a run
			p := openPatient(t, nil)
			p.leads.Store(true)
			p.slow.took.Store(int64(5 * time.Millisecond))
			p.write(t, time.Duration(point)*330*time.Millisecond)
			after := p.hangFor(t, 10*time.Second)
			if after < 5*time.Second || after > 6*time.Second || p.why.Role != disk.RoleLeader {
				t.Errorf("point %d: ended after %v: %v", point, after, p.why)
			}
			closeStores(t, p.Stores)
		}
	})
}

func TestALeaderOutlivesShortStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPatient(t, nil)
		p.leads.Store(true)
		p.slow.took.Store(int64(20 * time.Millisecond))
		for range 10 {
			if after := p.hangFor(t, 4*time.Second); after > 0 {
				t.Fatalf("a stall of 4 s ended it after %v: %v", after, p.why)
			}
			p.write(t, 4*time.Second)
		}
		closeStores(t, p.Stores)
	})
}

func TestALeaderOnADiskOfThreeSecondsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPatient(t, nil)
		p.leads.Store(true)
		p.slow.took.Store(int64(3 * time.Second))
		p.write(t, 12*time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.why == nil {
			t.Error("it goes on")
		}
		closeStores(t, p.Stores)
	})
}

// However busy a disk is kept: while each call is short, it does not hang.
func TestABusyDiskIsNoneThatHangs(t *testing.T) {
	for _, took := range []time.Duration{10 * time.Millisecond, 60 * time.Millisecond, 99 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			p := openPatient(t, nil)
			p.leads.Store(true)
			p.slow.took.Store(int64(took))
			p.write(t, 12*time.Second)
			if p.why != nil {
				t.Errorf("with calls of %v: %v", took, p.why)
			}
			closeStores(t, p.Stores)
		})
	}
}

func TestAFollowerEndsOnlyAfterThirtySeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := openPatient(t, nil)
		if after := p.hangFor(t, 29*time.Second); after > 0 {
			t.Errorf("ended after %v: %v", after, p.why)
		}
		p.slow.took.Store(int64(3 * time.Second)) // slow for long, but never for so long
		p.write(t, time.Minute)
		p.slow.took.Store(0)
		if after := p.hangFor(t, 40*time.Second); after < 30*time.Second || after > 31*time.Second || p.why.Role != disk.RoleFollower {
			t.Errorf("ended after %v: %v", after, p.why)
		}
		closeStores(t, p.Stores)
	})
}

// A stopped process sees no wake-ups, and one when it goes on: the clock has then
// moved by as long as it was stopped, in the middle of a call.
func TestAStoppedProcessIsNotTakenForAHangingDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan time.Time)
		p := openPatient(t, func(cfg *disk.Config) { cfg.Wake = wake })
		p.leads.Store(true)
		for range 20 {
			release := make(chan struct{})
			p.slow.hang.Store(&release)
			var call sync.WaitGroup
			p.index++
			call.Go(func() { must(t, p.Logs.StoreLog(entry(p.index, 1))) })
			synctest.Wait()
			wake <- time.Now()
			wake <- time.Now()
			time.Sleep(30 * time.Second) // the stop
			wake <- time.Now()
			p.slow.hang.Store(nil)
			close(release)
			call.Wait()
			wake <- time.Now()
		}
		if p.why != nil {
			t.Error(p.why)
		}
		slowest := testGauge(t, p.cfg, "leasenode_storage_slowest_seconds")
		if slowest < 29 || slowest > 31 {
			t.Errorf("the slowest call took %v s", slowest)
		}
		closeStores(t, p.Stores)
	})
}

// The log may be a file on the very disk that hangs.
func TestAHangEndsTheProcessEvenIfItCannotSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck, written := io.Pipe()
		p := openPatient(t, func(cfg *disk.Config) {
			cfg.Logger = hclog.New(&hclog.LoggerOptions{Output: written})
		})
		p.leads.Store(true)
		if after := p.hangFor(t, 10*time.Second); after < 5*time.Second || after > 6*time.Second {
			t.Errorf("ended after %v", after)
		}
		if hangs := testGauge(t, p.cfg, "leasenode_storage_hangs_total"); hangs != 1 {
			t.Errorf("%v hangs are counted", hangs)
		}
		line := make([]byte, 4096)
		n, err := stuck.Read(line)
		if err != nil || !bytes.Contains(line[:n], []byte("the disk hangs")) {
			t.Errorf("%q, %v", line[:n], err)
		}
		closeStores(t, p.Stores)
	})
}

// testGauge returns the value of a metric without labels.
func testGauge(t *testing.T, cfg disk.Config, name string) float64 {
	t.Helper()
	families, err := cfg.Registry.(prometheus.Gatherer).Gather()
	must(t, err)
	for _, f := range families {
		if f.GetName() == name {
			m := f.GetMetric()[0]
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	t.Fatalf("there is no metric %s", name)
	return 0
}
