package holder_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/leasenode/leasenode/api/leasepb"
	"github.com/leasenode/leasenode/holder"
	"github.com/leasenode/leasenode/lease"
	"github.com/leasenode/leasenode/lease/leasetest"
)

const aName = "n1.invalid:7201"

// onRoad runs test in a bubble, with a client of a node that is reached while open is
// true, and refuses connections otherwise.
func onRoad(t *testing.T, test func(t *testing.T, c *holder.Client, open *atomic.Bool), options ...holder.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		road := bufconn.Listen(1 << 16)
		b := &backend{id: "n1", store: leasetest.NewMemory(lease.NewSystemClock())}
		b.leader.ID, b.leader.APIAddr = "n1", aName
		server := grpc.NewServer(grpc.UnaryInterceptor(b.intercept), grpc.WaitForHandlers(true))
		leasepb.RegisterLeaseServiceServer(server, b)
		served := make(chan struct{})
		go func() { defer close(served); _ = server.Serve(road) }()
		defer func() { server.Stop(); <-served }()
		c, err := holder.Dial([]string{aName}, append(options, holder.DialWith(func(ctx context.Context, _ string) (net.Conn, error) {
			if !open.Load() {
				return nil, errors.New("connection refused")
			}
			return road.DialContext(ctx)
		}))...)
		succeed(t, "dial", err)
		defer func() { _ = c.Close() }()
		test(t, c, &open)
	})
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func logTo(b *logBuffer) hclog.Logger { return hclog.New(&hclog.LoggerOptions{Output: b}) }

// says holds that the log has that many lines with the words.
func says(t *testing.T, log *logBuffer, times int, words string) {
	t.Helper()
	if got := strings.Count(log.String(), words); got != times {
		t.Errorf("the log says %d times %q, want %d:\n%s", got, words, times, log)
	}
}

const complaint = "[WARN]  the cluster does not answer, or nobody leads it"

func TestAHolderThatNobodyAnswersSaysSo(t *testing.T) {
	var log logBuffer
	onRoad(t, func(t *testing.T, c *holder.Client, open *atomic.Bool) {
		h := newHolder(t, c, holder.Config{Owner: "r1", TTL: ttl, Clock: lease.NewSystemClock(), Logger: logTo(&log)})
		ended := make(chan error)
		go func() {
			ended <- h.Run(t.Context(), aKey, func(context.Context, *holder.Lease) error { return nil })
		}()
		time.Sleep(4 * time.Second)
		says(t, &log, 0, "does not answer")
		time.Sleep(3 * time.Second)
		says(t, &log, 1, complaint)
		says(t, &log, 1, "asked="+aName)
		says(t, &log, 1, `error="unavailable, try again`)
		says(t, &log, 1, "connection refused")
		if failed := h.Stats().Failed; failed < 5 {
			t.Errorf("%d tries failed", failed)
		}
		time.Sleep(53 * time.Second)
		says(t, &log, 4, complaint) // after 5, 10, 20 and 40 s
		open.Store(true)
		succeed(t, "run", <-ended)
		says(t, &log, 1, "the cluster serves again: after=1m")
		h.Close()
	})
}

func TestRenewalsThatNobodyAnswersAreToldOf(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var log logBuffer
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) { c.Logger = logTo(&log) })
		acquire(t, h, aKey)
		w.faulty.Cut()
		time.Sleep(ttl)
		says(t, &log, 1, complaint)
		w.faulty.Heal()
		time.Sleep(ttl)
		says(t, &log, 1, "the cluster serves again")
		h.Close()
	})
}

// A failure now and then, with answers between them, is no reason to worry.
func TestFailuresBetweenAnswersAreNoOutage(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		var log logBuffer
		h := w.holder("r1", lease.NewSystemClock(), func(c *holder.Config) { c.Logger = logTo(&log) })
		l := acquire(t, h, aKey)
		for range 20 {
			w.faulty.FailNext(leasetest.Renew, leasetest.Fault{Err: lease.ErrUnavailable})
			_ = l.Renew(t.Context())
			time.Sleep(time.Second)
			succeed(t, "renew", l.Renew(t.Context()))
		}
		says(t, &log, 0, "does not answer")
		says(t, &log, 0, "serves again")
		h.Close()
	})
}

func TestTriesToAcquireThatFailAreCounted(t *testing.T) {
	inLiveWorld(t, func(t *testing.T, w *world) {
		w.faulty.FailNext(leasetest.Acquire, leasetest.Fault{Err: lease.ErrUnavailable})
		w.faulty.FailNext(leasetest.Acquire, leasetest.Fault{LoseAnswer: true})
		h := w.holder("r1", lease.NewSystemClock())
		acquire(t, h, aKey)
		want(t, "failed", h.Stats().Failed, 2)
	})
}

// The end of a wait that no node has answered says where it asked, and why that failed.
func TestAWaitWithoutAnAnswerEndsWithTheReason(t *testing.T) {
	const text = `acquire "` + aKey + `" at ` + aName + ": unavailable: certainly not done, try again ("
	for name, cancelled := range map[string]bool{"a deadline": false, "a cancellation": true} {
		onRoad(t, func(t *testing.T, c *holder.Client, _ *atomic.Bool) {
			h := newHolder(t, c, holder.Config{Owner: "r1", TTL: ttl, Clock: lease.NewSystemClock()})
			defer h.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
			defer cancel()
			if cancelled {
				time.AfterFunc(6*time.Second, cancel)
			}
			err := h.Run(ctx, aKey, func(context.Context, *holder.Lease) error { return nil })
			wantCode(t, name, err, lease.CodeUnavailable)
			if !strings.HasPrefix(err.Error(), "run: "+text) || !strings.Contains(err.Error(), "connection refused") || !errors.Is(err, ctx.Err()) {
				t.Errorf("%s: %v", name, err)
			}
			if n := strings.Count(err.Error(), "given up"); n != 1 {
				t.Errorf("%s: it is given up %d times: %v", name, n, err)
			}
		})
	}
}

func TestAWatchThatNobodyAnswersIsToldOf(t *testing.T) {
	var log logBuffer
	onRoad(t, func(t *testing.T, c *holder.Client, _ *atomic.Bool) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for range c.Observe(ctx, aKey) {
		}
		if n := strings.Count(log.String(), complaint); n < 3 || n > 4 || strings.Count(log.String(), "asked="+aName) != n {
			t.Errorf("the log says it %d times:\n%s", n, &log)
		}
	}, holder.WithLogger(logTo(&log)))
}
