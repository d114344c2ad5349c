package node_test

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
)

var nodeBinary = flag.String("binary", "", "the program to measure the memory of, with watches that nobody reads")

// TestMemoryOfUnreadWatches measures, with -binary, a node that is a process of its own:
// what it takes up for watches that nobody reads, and what those do to writers and to one
// who reads. It takes two minutes, and needs /proc.
func TestMemoryOfUnreadWatches(t *testing.T) {
	if *nodeBinary == "" {
		t.Skip("give -binary")
	}
	const leases = 200_000
	p := startProcess(t)
	client, err := holder.Dial([]string{p.addr})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	acquireMany(t, client, leases)
	t.Logf("%d leases: %d MiB", leases, p.settled())
	for _, watches := range []int{400, 2000} {
		stop := p.unread(watches, &leasepb.WatchRequest{Sync: true})
		t.Logf("%d unread watches that list: %d MiB at most", watches, p.highest(15*time.Second))
		stop()
		t.Logf("after they have ended: %d MiB", p.settled())
	}
	alone := renewAll(t, client, 10*time.Second)
	t.Logf("renewing 1000 at a time: %d/s, %d MiB", alone, p.settled())
	stop := p.unread(2000, &leasepb.WatchRequest{Renewals: true})
	reader := readAll(t, client)
	beside := make(chan int)
	go func() { beside <- renewAll(t, client, 20*time.Second) }()
	highest := p.highest(20 * time.Second)
	t.Logf("beside 2000 unread watches and one that is read: %d/s, %d MiB at most", <-beside, highest)
	t.Logf("the one that is read: %s", reader())
	stop()
}

// process is a node by itself.
type process struct {
	t    *testing.T
	addr string
	pid  int
}

func startProcess(t *testing.T) *process {
	t.Helper()
	var addrs []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, l.Addr().String())
		_ = l.Close()
	}
	cmd := exec.Command(*nodeBinary, "serve", "--id", "n1", "--data-dir", filepath.Join(t.TempDir(), "n1"), "--peer-addr", addrs[0], "--api-addr", addrs[1], "--cluster", "n1="+addrs[0], "--log-level", "error")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{t: t, addr: addrs[1], pid: cmd.Process.Pid}
}

// resident returns the memory that p has now, in MiB.
func (p *process) resident() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return kib >> 10
}

// highest returns the most that p has within span, in MiB.
func (p *process) highest(span time.Duration) int {
	most, tick := 0, time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(span); time.Now().Before(end); <-tick.C {
		most = max(most, p.resident())
	}
	return most
}

// settled returns what p has when it has had time to give memory back.
func (p *process) settled() int {
	least := p.resident()
	for range 50 {
		<-time.After(100 * time.Millisecond)
		least = min(least, p.resident())
	}
	return least
}

// unread begins watches that nobody reads, 100 on a connection.
func (p *process) unread(watches int, req *leasepb.WatchRequest) (stop func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var conns []*grpc.ClientConn
	for n := range watches {
		if n%100 == 0 {
			conn, err := grpc.NewClient("passthrough:///"+p.addr, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
			if err != nil {
				p.t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		if _, err := leasepb.NewLeaseServiceClient(conns[len(conns)-1]).Watch(ctx, req, grpc.WaitForReady(true)); err != nil {
			p.t.Fatal(err)
		}
	}
	return func() {
		cancel()
		for _, conn := range conns {
			_ = conn.Close()
		}
	}
}

func keyOf(n int) string { return fmt.Sprintf("tenant/%08d", n) }

func acquireMany(t *testing.T, client *holder.Client, leases int) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var next atomic.Int64
	var writers sync.WaitGroup
	for range 500 {
		writers.Go(func() {
			for n := int(next.Add(1)); n <= leases; n = int(next.Add(1)) {
				req := lease.AcquireRequest{Key: keyOf(n), Owner: "worker", TTL: 24 * time.Hour, Attributes: map[string]string{"addr": "10.0.0.1:8080", "version": "1.2.3"}}
				if _, err := client.Acquire(ctx, req); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// renewAll has 8 callers renew 1000 leases at a time, and returns how many that are in a
// second.
func renewAll(t *testing.T, client *holder.Client, span time.Duration) int {
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var done atomic.Int64
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for round := 0; ctx.Err() == nil; round++ {
				var renewals []lease.RenewRequest
				for i := range lease.MaxBatchRenew {
					n := 1 + (caller*20_000+round*lease.MaxBatchRenew+i)%160_000
					renewals = append(renewals, lease.RenewRequest{Key: keyOf(n), Owner: "worker", Epoch: 1, TTL: 24 * time.Hour})
				}
				outcomes, err := client.BatchRenew(ctx, renewals)
				if err == nil {
					done.Add(int64(len(outcomes)))
				}
			}
		})
	}
	callers.Wait()
	return int(float64(done.Load()) / span.Seconds())
}

// readAll reads everything until what it returns is called, which says how that went.
func readAll(t *testing.T, client *holder.Client) func() string {
	ctx, cancel := context.WithCancel(t.Context())
	events, updates, silent := 0, 0, time.Duration(0)
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		last := time.Now()
		for u, err := range client.Watch(ctx, lease.WatchRequest{Renewals: true}) {
			if failed = err; err != nil {
				return
			}
			events += len(u.Events)
			updates++
			silent, last = max(silent, time.Since(last)), time.Now()
		}
	}()
	return func() string {
		cancel()
		<-done
		return fmt.Sprintf("%d events in %d updates, silent for %v at most, ended with %v", events, updates, silent.Round(time.Millisecond), failed)
	}
}
