package crashtest_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leasenode/leasenode/lease"
)

var failovers = flag.Int("failovers", 4, "how often TestFailover ends a leader")

const (
	signOfWin = "takes the place of the leader that is gone"
)

// count returns how often text stands in the logs of the nodes, those of their earlier
// processes included.
func (c *cluster) count(text string) (n int) {
	for _, p := range c.all {
		n += strings.Count(p.log.String(), text)
	}
	return n
}

// probing has the nodes serve their metrics.
func (c *cluster) probing() (https []string) {
	for range c.procs {
		https = append(https, c.freeAddr())
	}
	c.flags = func(i int) []string { return []string{"--http-addr", https[i]} }
	return https
}

// probes returns how often the investigations of a node have come to result.
func probes(t *testing.T, httpAddr, result string) (count int) {
	t.Helper()
	resp, err := http.Get("http://" + httpAddr + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, fmt.Sprintf("leasenode_failover_probes_total{result=%q} ", result)); ok {
			if _, err := fmt.Sscan(rest, &count); err != nil {
				t.Fatal(err)
			}
		}
	}
	return count
}

// writers write all the time, through clients with default settings, and note when they
// succeed.
type writers struct {
	stop context.CancelFunc
	done sync.WaitGroup

	mu        sync.Mutex
	succeeded []time.Time
}

func (c *cluster) startWriters(n int) *writers {
	ctx, cancel := context.WithCancel(context.Background())
	w := &writers{stop: cancel}
	client := c.dial()
	for i := range n {
		w.done.Go(func() {
			pace := time.NewTicker(2 * time.Millisecond) // leave some of the machine to the nodes
			defer pace.Stop()
			for k := 0; ctx.Err() == nil; k++ {
				<-pace.C
				call, cancel := context.WithTimeout(ctx, 10*time.Second)
				_, err := client.Acquire(call, lease.AcquireRequest{Key: fmt.Sprintf("%p/%d/%d", w, i, k), Owner: "o", TTL: time.Hour})
				cancel()
				if err == nil {
					w.mu.Lock()
					w.succeeded = append(w.succeeded, time.Now())
					w.mu.Unlock()
				}
			}
		})
	}
	return w
}

// gap returns the longest time without a success since a moment.
func (w *writers) gap(since time.Time) time.Duration {
	w.mu.Lock()
	times := slices.Clone(w.succeeded)
	w.mu.Unlock()
	slices.SortFunc(times, time.Time.Compare)
	longest, last := time.Duration(0), since
	for _, at := range times {
		if at.After(since) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return max(longest, time.Since(last))
}

// successes returns how many writes have succeeded since a moment.
func (w *writers) successes(since time.Time) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.succeeded {
		if at.After(since) {
			count++
		}
	}
	return count
}

func (w *writers) end() {
	w.stop()
	w.done.Wait()
}

// A leader that is killed is replaced without waiting for a timeout, and one that is
// ended with SIGTERM hands over.
func TestFailover(t *testing.T) {
	for _, how := range []struct {
		name   string
		nodes  int
		signal syscall.Signal
	}{
		{"3 nodes, SIGKILL", 3, syscall.SIGKILL},
		{"5 nodes, SIGKILL", 5, syscall.SIGKILL},
		{"3 nodes, SIGTERM", 3, syscall.SIGTERM},
	} {
		t.Run(how.name, func(t *testing.T) {
			c := newCluster(t, how.nodes)
			c.startAll()
			c.ready()
			w := c.startWriters(16)
			defer w.end()
			var gaps []time.Duration
			for range *failovers {
				gaps = append(gaps, c.failover(w, how.signal))
				c.agree()
			}
			report(t, how.name, gaps)
			won := c.count(signOfWin)
			t.Logf("%d leaders were replaced without a timeout", won)
			// A machine that is too busy may let a timeout be faster now and then.
			if how.signal == syscall.SIGKILL && won < (*failovers+1)/2 {
				t.Errorf("of %d leaders that were killed only %d were replaced without a timeout", *failovers, won)
			}
		})
	}
}

// failover ends the leader, measures how long nothing could be written, and starts the
// node again.
func (c *cluster) failover(w *writers, signal syscall.Signal) time.Duration {
	c.t.Helper()
	leader := c.leader()
	steady := time.Now()
	c.eventually("writes succeed", func(context.Context) bool { return w.successes(steady) > 100 })
	began := time.Now()
	if err := c.procs[leader].cmd.Process.Signal(signal); err != nil {
		c.t.Fatal(err)
	}
	<-c.procs[leader].exited
	c.eventually("writes succeed again", func(context.Context) bool {
		return time.Since(began) > time.Second && w.successes(began.Add(time.Since(began)/2)) > 100
	})
	gap := w.gap(began)
	c.start(leader)
	return gap
}

// report logs the quantiles of gaps.
func report(t *testing.T, name string, gaps []time.Duration) {
	t.Helper()
	slices.Sort(gaps)
	at := func(q float64) time.Duration {
		return gaps[min(len(gaps)-1, int(q*float64(len(gaps))))].Round(100 * time.Microsecond)
	}
	t.Logf("%s: no write succeeded for, in %d runs: median %v, p90 %v, worst %v", name, len(gaps), at(0.5), at(0.9), at(1))
}
