package holder

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/leasenode/leasenode/api/bundle"
	"github.com/leasenode/leasenode/api/wire"
	"github.com/leasenode/leasenode/lease"
)

const (
	// firstComplaint is how long nobody has served what was asked when that is first
	// logged; it is logged again when it has gone on for twice as long, and every
	// mostComplaint at least.
	firstComplaint = 5 * time.Second
	mostComplaint  = 10 * time.Minute
	// forgetTrouble is how long nothing was asked when an earlier failure says nothing
	// about the present.
	forgetTrouble = time.Minute
)

// contact is whether anybody serves what is asked of a store. It tells its logger when
// that has not been so for a while, and when it is so again. It looks at tries only, and
// keeps no timer. All methods are safe for concurrent use.
type contact struct {
	log      hclog.Logger
	troubled atomic.Bool // a try has failed since the last that was served

	mu     sync.Mutex
	began  time.Time     // the first such try
	latest time.Time     // and the latest
	next   time.Duration // after began comes the next line
	asked  []string      // since began
}

// served takes in that a try was answered, by a node that could.
func (c *contact) served() {
	if !c.troubled.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.troubled.Load() && c.next > firstComplaint {
		c.log.Info("the cluster serves again", "after", time.Since(c.began).Round(time.Second))
	}
	c.clearLocked()
}

func (c *contact) clearLocked() {
	c.troubled.Store(false)
	c.asked, c.next = nil, firstComplaint
}

// failed takes in that a try at addr, which is empty if it is not known, was not served.
func (c *contact) failed(addr string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if !c.troubled.Load() || now.Sub(c.latest) > forgetTrouble {
		c.clearLocked()
		c.began = now
		c.troubled.Store(true)
	}
	c.latest = now
	if addr != "" && !slices.Contains(c.asked, addr) {
		c.asked = append(c.asked, addr)
	}
	lasted := now.Sub(c.began)
	if lasted < c.next {
		return
	}
	c.next = lasted + min(lasted, mostComplaint)
	about := []any{"for", lasted.Round(time.Second), "error", err}
	if len(c.asked) > 0 {
		about = append(about, "asked", strings.Join(c.asked, ", "))
	}
	c.log.Warn("the cluster does not answer, or nobody leads it: trying on", about...)
}

// unserved reports whether err, with which a try ended, says that nobody served it.
func unserved(err error) bool {
	code := lease.CodeOf(err)
	return code == lease.CodeUnavailable || code == lease.CodeOutcomeUnknown
}

// hearing is what a holder wants to know about the tries of one call of a [Client].
type hearing struct {
	contact  *contact
	failures *atomic.Uint64 // counts those that nobody served; may be nil
}

type hearingKey struct{}

// latestTry is the latest try of a call that nobody served.
type latestTry struct {
	mu     sync.Mutex
	addr   string
	failed error // nil if there was none
}

type latestTryKey struct{}

// heardConn is a connection on which every unary try is heard of.
type heardConn struct {
	*bundle.Conn
	addr  string
	conns *conns
}

// Invoke implements [grpc.ClientConnInterface].
func (h heardConn) Invoke(ctx context.Context, method string, req, reply any, options ...grpc.CallOption) error {
	failed := h.Conn.Invoke(ctx, method, req, reply, options...)
	h.conns.heard(ctx, h.addr, failed)
	return failed
}

// hear is the interceptor that hears of every unary try at addr, for a lane.
func (c *conns) hear(addr string) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		failed := invoke(ctx, method, req, reply, conn, options...)
		c.heard(ctx, addr, failed)
		return failed
	}
}

// heard takes in how a try of a call under ctx has ended.
func (c *conns) heard(ctx context.Context, addr string, failed error) {
	if failed != nil && errors.Is(ctx.Err(), context.Canceled) { // it was not given its time
		return
	}
	h, ok := ctx.Value(hearingKey{}).(hearing)
	if !ok {
		h.contact = &c.contact
	}
	err := wire.FromCall(failed, wire.Reads)
	if !unserved(err) {
		h.contact.served()
		return
	}
	h.contact.failed(addr, err)
	if h.failures != nil {
		h.failures.Add(1)
	}
	if l, ok := ctx.Value(latestTryKey{}).(*latestTry); ok {
		l.mu.Lock()
		l.addr, l.failed = addr, failed
		l.mu.Unlock()
	}
}

// explain returns err, with which a wait for key has ended under ctx, with what the
// latest try failed with, if that is why.
func (l *latestTry) explain(ctx context.Context, key string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var tells interface{ GRPCStatus() *status.Status } // of a try by itself
	if l.failed == nil || !unserved(err) || ctx.Err() == nil || errors.As(err, &tells) {
		return err
	}
	a := attempt[answered]{subject: subjectOf(lease.OpAcquire, key), effect: wire.Mutates}
	latest := a.explain(l.addr, l.failed)
	if errors.Is(err, lease.ErrUnavailable) && errors.Is(latest, lease.ErrUnavailable) {
		return giveUp(ctx, latest, nil)
	}
	return &lateError{err: err, latest: latest}
}

// lateError is err, and tells about a try before it.
type lateError struct{ err, latest error }

func (e *lateError) Error() string {
	return e.err.Error() + "; the latest try that failed before: " + e.latest.Error()
}
func (e *lateError) Unwrap() error { return e.err }
